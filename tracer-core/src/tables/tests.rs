use super::*;

#[test]
fn tables_are_indexed_by_their_order() {
    for (index, table) in Table::ALL.into_iter().enumerate() {
        assert_eq!(table as usize, index);
        assert_eq!(Table::of_name(table.name()), Some(table));
    }
}

#[test]
fn every_table_has_a_time_and_no_column_twice() {
    for table in Table::ALL {
        let columns = table.columns();
        let time = &columns[table.time_index()];
        assert_eq!(
            (time.name, time.kind, time.nullable),
            (table.time_column(), Kind::U64, false)
        );
        for (index, column) in columns.iter().enumerate() {
            assert!(
                columns[..index].iter().all(|other| other.name != column.name),
                "{table:?}.{}",
                column.name
            );
            assert!(column.meaning.ends_with('.'), "{table:?}.{}", column.name);
        }
    }
}

#[test]
fn the_time_of_a_row_is_that_of_its_table() {
    use crate::sample;
    let facts = [
        Fact::Dispatch(sample::dispatch(9, 1_234)),
        Fact::DispatchRun(sample::dispatch_run(0, 5, 77)),
        Fact::Queue(sample::queue(3)),
        Fact::Kernel(sample::kernel(1)),
    ];
    for fact in facts {
        let record = Record::of(&fact);
        assert_eq!(Some(fact.time_ns()), record.number(record.table().time_column()));
    }
}
