//! The views of rocpd that have something to say of a trace. Names and columns are those that AMD publishes (data_views.sql and
//! summary_views.sql beside rocpd_tables.sql); durations of the summaries are microseconds.

use std::fmt::Write as _;

/// A view: its name, its columns, and the tables that it joins: the first, and each other one with the column that leads to it. A
/// table with `?` need not have a row.
struct View {
    name: &'static str,
    columns: &'static str,
    from: &'static str,
    joins: &'static [(&'static str, &'static str, &'static str)],
}

/// Columns of an event, in views of what it belongs to.
const EVENT: &str = "e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id";

const VIEWS: &[View] = &[
    View {
        name: "processes",
        columns: "n.id AS nid, n.machine_id, n.system_name, n.hostname, n.release AS system_release, n.version AS system_version, \
                  p.guid, p.ppid, p.pid, p.init, p.start, p.\"end\", p.fini, p.command",
        from: "info_process p",
        joins: &[("info_node", "n", "p.nid")],
    },
    View {
        name: "threads",
        columns: "n.id AS nid, n.machine_id, n.system_name, n.hostname, n.release AS system_release, n.version AS system_version, \
                  p.guid, p.ppid, p.pid, t.tid, t.start, t.\"end\", t.name",
        from: "info_thread t",
        joins: &[("info_process", "p", "t.pid"), ("info_node", "n", "t.nid")],
    },
    View {
        name: "code_objects",
        columns: "c.id, c.guid, c.nid, p.pid, a.absolute_index AS agent_abs_index, c.uri, c.load_base, c.load_size, c.load_delta, \
                  c.storage_type AS storage_type_str, NULL AS code_object_size, NULL AS storage_type, NULL AS memory_base, \
                  NULL AS memory_size",
        from: "info_code_object c",
        joins: &[("info_agent?", "a", "c.agent_id"), ("info_process", "p", "c.pid")],
    },
    View {
        name: "kernel_symbols",
        columns: "k.id, k.guid, k.nid, p.pid, k.code_object_id, k.kernel_name, k.display_name, k.kernel_object, \
                  k.kernarg_segment_size, k.kernarg_segment_alignment, k.group_segment_size, k.private_segment_size, k.sgpr_count, \
                  k.arch_vgpr_count, k.accum_vgpr_count, NULL AS kernel_symbol_size, k.id AS kernel_id, \
                  NULL AS kernel_code_entry_byte_offset, k.display_name AS formatted_kernel_name, \
                  k.display_name AS demangled_kernel_name, k.display_name AS truncated_kernel_name, NULL AS kernel_address",
        from: "info_kernel_symbol k",
        joins: &[("info_process", "p", "k.pid")],
    },
    View {
        name: "regions",
        columns: "r.id, r.guid, c.string AS category, s.string AS name, r.nid, p.pid, t.tid, r.start, r.\"end\", \
                  r.\"end\" - r.start AS duration, r.event_id, {event}, e.extdata, e.call_stack, e.line_info",
        from: "region r",
        joins: &[
            ("event", "e", "r.event_id"),
            ("string?", "c", "e.category_id"),
            ("string", "s", "r.name_id"),
            ("info_process", "p", "r.pid"),
            ("info_thread", "t", "r.tid"),
        ],
    },
    View {
        name: "region_args",
        columns: "r.id, r.guid, r.nid, p.pid, a.type, a.name, a.value",
        from: "arg a",
        joins: &[("event", "e", "a.event_id"), ("info_process", "p", "r.pid")],
    },
    View {
        name: "samples",
        columns: "m.id, m.guid, c.string AS category, s.string AS name, t.nid, p.pid, h.tid, m.timestamp, m.event_id, {event}, \
                  e.extdata, e.call_stack, e.line_info",
        from: "sample m",
        joins: &[
            ("track", "t", "m.track_id"),
            ("event", "e", "m.event_id"),
            ("string?", "c", "e.category_id"),
            ("string?", "s", "t.name_id"),
            ("info_process", "p", "t.pid"),
            ("info_thread", "h", "t.tid"),
        ],
    },
    View {
        name: "kernels",
        columns: "k.id, k.guid, t.tid, c.string AS category, g.string AS region, s.display_name AS name, k.nid, p.pid, \
                  k.agent_id, a.absolute_index AS agent_abs_index, a.logical_index AS agent_log_index, \
                  a.type_index AS agent_type_index, a.type AS agent_type, s.code_object_id, k.kernel_id, k.dispatch_id, k.stream_id, \
                  k.queue_id, q.name AS queue, m.name AS stream, k.start, k.\"end\", k.\"end\" - k.start AS duration, \
                  k.grid_size_x AS grid_x, k.grid_size_y AS grid_y, k.grid_size_z AS grid_z, k.workgroup_size_x AS workgroup_x, \
                  k.workgroup_size_y AS workgroup_y, k.workgroup_size_z AS workgroup_z, k.group_segment_size AS lds_size, \
                  k.private_segment_size AS scratch_size, s.arch_vgpr_count AS vgpr_count, s.accum_vgpr_count, s.sgpr_count, \
                  s.group_segment_size AS static_lds_size, s.private_segment_size AS static_scratch_size, {event}",
        from: "kernel_dispatch k",
        joins: &[
            ("info_agent", "a", "k.agent_id"),
            ("event", "e", "k.event_id"),
            ("string?", "c", "e.category_id"),
            ("string?", "g", "k.region_name_id"),
            ("info_kernel_symbol", "s", "k.kernel_id"),
            ("info_stream?", "m", "k.stream_id"),
            ("info_queue?", "q", "k.queue_id"),
            ("info_process", "p", "k.pid"),
            ("info_thread", "t", "k.tid"),
        ],
    },
    View {
        name: "memory_copies",
        columns: "m.id, m.guid, c.string AS category, m.nid, p.pid, t.tid, m.start, m.\"end\", m.\"end\" - m.start AS duration, \
                  s.string AS name, g.string AS region_name, m.stream_id, m.queue_id, w.name AS stream_name, q.name AS queue_name, \
                  m.size, d.name AS dst_device, d.absolute_index AS dst_agent_abs_index, d.logical_index AS dst_agent_log_index, \
                  d.type_index AS dst_agent_type_index, d.type AS dst_agent_type, m.dst_address, o.name AS src_device, \
                  o.absolute_index AS src_agent_abs_index, o.logical_index AS src_agent_log_index, \
                  o.type_index AS src_agent_type_index, o.type AS src_agent_type, m.src_address, {event}",
        from: "memory_copy m",
        joins: &[
            ("event", "e", "m.event_id"),
            ("string?", "c", "e.category_id"),
            ("string", "s", "m.name_id"),
            ("string?", "g", "m.region_name_id"),
            ("info_agent?", "d", "m.dst_agent_id"),
            ("info_agent?", "o", "m.src_agent_id"),
            ("info_queue?", "q", "m.queue_id"),
            ("info_stream?", "w", "m.stream_id"),
            ("info_process", "p", "m.pid"),
            ("info_thread", "t", "m.tid"),
        ],
    },
    View {
        name: "events_args",
        columns: "e.id AS event_id, c.string AS category, e.stack_id, e.parent_stack_id, e.correlation_id, \
                  a.position AS arg_position, a.type AS arg_type, a.name AS arg_name, a.value AS arg_value, e.call_stack, \
                  e.line_info, a.extdata",
        from: "arg a",
        joins: &[("event", "e", "a.event_id"), ("string?", "c", "e.category_id")],
    },
    View {
        name: "stream_args",
        columns: "a.id AS argument_id, a.event_id, a.position AS arg_position, a.type AS arg_type, a.value AS arg_value, \
                  s.id AS stream_id, s.nid, p.pid, s.name AS stream_name, s.extdata",
        from: "arg a",
        joins: &[
            ("info_stream", "s", "a.extdata ->> '$.stream_id'"),
            ("info_process", "p", "s.pid"),
        ],
    },
];

/// Views of views.
const SUMMARIES: &str = "
CREATE VIEW sample_regions AS SELECT id, guid, category, name, nid, pid, tid, timestamp AS start, timestamp AS \"end\", 0 AS duration,
    event_id, stack_id, parent_stack_id, corr_id, extdata, call_stack, line_info FROM samples;
CREATE VIEW regions_and_samples AS SELECT * FROM regions UNION ALL SELECT * FROM sample_regions;
CREATE VIEW top_kernels AS
    WITH every AS (SELECT sum(duration) AS ns FROM kernels)
    SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration, sum(duration) / 1000.0 / count(*) AS average,
        sum(duration) * 100.0 / every.ns AS percentage
    FROM kernels, every GROUP BY name ORDER BY total_duration DESC;
CREATE VIEW top AS
    WITH operations AS (SELECT name, duration FROM kernels UNION ALL SELECT name, duration FROM memory_copies
            UNION ALL SELECT name, duration FROM regions),
        every AS (SELECT sum(duration) AS ns FROM operations)
    SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration, sum(duration) / 1000.0 / count(*) AS average,
        sum(duration) * 100.0 / every.ns AS percentage
    FROM operations, every GROUP BY name ORDER BY total_duration DESC;
CREATE VIEW busy AS
    WITH wall AS (SELECT max(\"end\") - min(start) AS ns FROM kernels)
    SELECT k.agent_id, k.agent_type AS type, sum(k.duration) AS GpuTime, wall.ns AS WallTime, sum(k.duration) * 1.0 / wall.ns AS Busy
    FROM kernels k, wall GROUP BY k.agent_id;
";

/// Returns the statements that create the views.
pub fn views() -> String {
    let mut sql = String::new();
    for view in VIEWS {
        let columns = view.columns.replace("{event}", EVENT);
        // Writing to a string does not fail.
        let _ = write!(
            sql,
            "CREATE VIEW {} AS SELECT {columns} FROM rocpd_{}",
            view.name, view.from
        );
        if view.name == "region_args" {
            sql.push_str(" JOIN rocpd_region r ON r.event_id = a.event_id");
        }
        for (table, alias, column) in view.joins {
            let (table, kind) = table
                .strip_suffix('?')
                .map_or((*table, "JOIN"), |table| (table, "LEFT JOIN"));
            let _ = write!(sql, " {kind} rocpd_{table} {alias} ON {alias}.id = {column}");
        }
        sql.push_str(";\n");
    }
    sql + SUMMARIES
}
