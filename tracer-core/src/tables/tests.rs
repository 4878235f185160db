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
