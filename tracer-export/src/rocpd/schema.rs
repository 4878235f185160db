//! The tables of rocpd, version 3 of its schema.
//!
//! AMD publishes the schema with rocprofiler-sdk (github.com/ROCm/rocm-systems, below
//! projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd: rocpd_tables.sql). Names, types and references of the columns are
//! those of it. Every table exists, also those that tracer has nothing for, because AMD's tools expect them.

use std::fmt::Write as _;

/// Value of the metadata `schema_version`.
pub const VERSION: &str = "3";

/// Tables and their columns after `id` and `guid`: name, type, `!` if it is never null, and `>` with the table that it refers to.
/// `JSON` is a document, which is `{}` by default.
const TABLES: &[(&str, &str)] = &[
    ("string", "string UNIQUE_TEXT!"),
    (
        "info_node",
        "hash UNIQUE_BIGINT!, machine_id UNIQUE_TEXT!, system_name TEXT, hostname TEXT, release TEXT, version TEXT, \
         hardware_name TEXT, domain_name TEXT",
    ),
    (
        "info_process",
        "nid INTEGER! >info_node, ppid INTEGER, pid INTEGER!, init BIGINT, fini BIGINT, start BIGINT, end BIGINT, command TEXT, \
         environment JSON, extdata JSON",
    ),
    (
        "info_thread",
        "nid INTEGER! >info_node, ppid INTEGER, pid INTEGER! >info_process, tid INTEGER!, name TEXT, start BIGINT, end BIGINT, \
         extdata JSON",
    ),
    (
        "info_agent",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, type TEXT, absolute_index INTEGER, logical_index INTEGER, \
         type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, product_name TEXT, user_name TEXT, \
         extdata JSON",
    ),
    (
        "info_queue",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, name TEXT, extdata JSON",
    ),
    (
        "info_stream",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, name TEXT, extdata JSON",
    ),
    (
        "info_pmc",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, agent_id INTEGER >info_agent, target_arch TEXT, event_code INT, \
         instance_id INTEGER, name TEXT!, symbol TEXT!, description TEXT, long_description TEXT, component TEXT, units TEXT, \
         value_type TEXT, block TEXT, expression TEXT, is_constant INTEGER, is_derived INTEGER, extdata JSON",
    ),
    (
        "info_code_object",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, agent_id INTEGER >info_agent, uri TEXT, load_base BIGINT, \
         load_size BIGINT, load_delta BIGINT, storage_type TEXT, extdata JSON",
    ),
    (
        "info_kernel_symbol",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, code_object_id INTEGER! >info_code_object, kernel_name TEXT, \
         display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER, kernarg_segment_alignment INTEGER, \
         group_segment_size INTEGER, private_segment_size INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER, \
         accum_vgpr_count INTEGER, extdata JSON",
    ),
    (
        "track",
        "nid INTEGER! >info_node, pid INTEGER >info_process, tid INTEGER >info_thread, name_id INTEGER >string, extdata JSON",
    ),
    (
        "event",
        "category_id INTEGER >string, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER, call_stack JSON, \
         line_info JSON, extdata JSON",
    ),
    (
        "arg",
        "event_id INTEGER! >event, position INTEGER!, type TEXT!, name TEXT!, value TEXT, extdata JSON",
    ),
    (
        "pmc_event",
        "event_id INTEGER >event, pmc_id INTEGER! >info_pmc, value REAL, extdata JSON",
    ),
    (
        "region",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, tid INTEGER! >info_thread, start BIGINT!, end BIGINT!, \
         name_id INTEGER! >string, event_id INTEGER >event, extdata JSON",
    ),
    (
        "sample",
        "track_id INTEGER! >track, timestamp BIGINT!, event_id INTEGER >event, extdata JSON",
    ),
    (
        "kernel_dispatch",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, tid INTEGER >info_thread, agent_id INTEGER! >info_agent, \
         kernel_id INTEGER! >info_kernel_symbol, dispatch_id INTEGER!, queue_id INTEGER! >info_queue, \
         stream_id INTEGER! >info_stream, start BIGINT!, end BIGINT!, private_segment_size INTEGER, group_segment_size INTEGER, \
         workgroup_size_x INTEGER!, workgroup_size_y INTEGER!, workgroup_size_z INTEGER!, grid_size_x INTEGER!, \
         grid_size_y INTEGER!, grid_size_z INTEGER!, region_name_id INTEGER >string, event_id INTEGER >event, extdata JSON",
    ),
    (
        "memory_copy",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, tid INTEGER >info_thread, start BIGINT!, end BIGINT!, \
         name_id INTEGER! >string, dst_agent_id INTEGER >info_agent, dst_address INTEGER, src_agent_id INTEGER >info_agent, \
         src_address INTEGER, size INTEGER!, queue_id INTEGER >info_queue, stream_id INTEGER >info_stream, \
         region_name_id INTEGER >string, event_id INTEGER >event, extdata JSON",
    ),
    (
        "memory_allocate",
        "nid INTEGER! >info_node, pid INTEGER! >info_process, tid INTEGER >info_thread, agent_id INTEGER >info_agent, type TEXT, \
         level TEXT, start BIGINT!, end BIGINT!, address INTEGER, size INTEGER!, queue_id INTEGER >info_queue, \
         stream_id INTEGER >info_stream, event_id INTEGER >event, extdata JSON",
    ),
];

/// Returns the statements that create the tables, whose names end in `suffix`, and a view of each without it.
pub fn tables(suffix: &str, guid: &str) -> String {
    let mut sql = format!(
        "CREATE TABLE \"rocpd_metadata{suffix}\" (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, tag TEXT NOT NULL, value TEXT NOT \
         NULL);\nCREATE VIEW rocpd_metadata AS SELECT * FROM \"rocpd_metadata{suffix}\";\n"
    );
    for (name, columns) in TABLES {
        let mut definitions = vec![
            "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT".to_owned(),
            format!("guid TEXT DEFAULT '{guid}' NOT NULL"),
        ];
        let mut references = Vec::new();
        for column in columns.split(',') {
            let (definition, reference) = column_of(column, suffix);
            definitions.push(definition);
            references.extend(reference);
        }
        definitions.extend(references);
        let definitions = definitions.join(", ");
        // Writing to a string does not fail.
        let _ = writeln!(
            sql,
            "CREATE TABLE \"rocpd_{name}{suffix}\" ({definitions});\nCREATE VIEW \"rocpd_{name}\" AS SELECT * FROM \
             \"rocpd_{name}{suffix}\";"
        );
    }
    sql
}

/// Returns the definition of a column, and its reference to another table.
fn column_of(column: &str, suffix: &str) -> (String, Option<String>) {
    let mut words = column.split_whitespace();
    let name = words.next().unwrap_or_default();
    let kind = words.next().unwrap_or_default();
    let (kind, required) = kind.strip_suffix('!').map_or((kind, ""), |kind| (kind, " NOT NULL"));
    let definition = match kind.strip_prefix("UNIQUE_") {
        Some(kind) => format!("\"{name}\" {kind}{required} UNIQUE"),
        None if kind == "JSON" => format!("\"{name}\" JSONB DEFAULT '{{}}' NOT NULL"),
        None => format!("\"{name}\" {kind}{required}"),
    };
    let reference = words
        .next()
        .and_then(|word| word.strip_prefix('>'))
        .map(|table| format!("FOREIGN KEY (\"{name}\") REFERENCES \"rocpd_{table}{suffix}\" (id) ON UPDATE CASCADE"));
    (definition, reference)
}
