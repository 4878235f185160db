//! The parts of Grafana's dashboards that the project uses, as types that accept nothing else.
//!
//! The source of names, types and ranges is the schema that Grafana publishes: `kinds/dashboard/dashboard_kind.cue` of
//! grafana/grafana for dashboards, panels, links, variables and fields; and the Grafana Foundation SDK 10.1, whose classes are
//! generated from such schemas, for the options of the panels `stat`, `table` and `timeseries`, and for queries of Prometheus.

#![expect(dead_code, reason = "tests read some of the fields; the others are only checked")]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Declares objects. Other fields than these are errors; a missing field is one unless its type is `Option`.
macro_rules! objects {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields, rename_all = "camelCase")]
            pub struct $name {
                $(pub $field: $type,)*
            }
        )*
    };
}

objects! {
    Dashboard {
        uid: String,
        title: String,
        description: String,
        tags: Vec<String>,
        links: Vec<Link>,
        schema_version: u16,
        version: u32,
        editable: bool,
        graph_tooltip: u8,
        timezone: String,
        time: Time,
        refresh: String,
        templating: Templating,
        panels: Vec<Panel>,
    }
    Time { from: String, to: String }
    Link {
        title: String,
        r#type: LinkType,
        icon: String,
        tooltip: String,
        url: String,
        tags: Vec<String>,
        as_dropdown: bool,
        target_blank: bool,
        include_vars: bool,
        keep_time: bool,
    }
    Templating { list: Vec<Variable> }
    Variable {
        name: String,
        label: String,
        description: String,
        r#type: VariableType,
        datasource: Option<Datasource>,
        query: VariableQuery,
        refresh: Option<u8>,
        include_all: Option<bool>,
        multi: Option<bool>,
        current: Option<Current>,
    }
    LabelValues { query: String, ref_id: String }
    Current { text: Vec<String>, value: Vec<String> }
    Datasource { r#type: String, uid: String }
    Panel {
        id: u32,
        r#type: PanelType,
        title: String,
        description: String,
        datasource: Datasource,
        grid_pos: GridPos,
        field_config: FieldConfigSource,
        options: Value,
        targets: Vec<Target>,
        links: Option<Vec<Link>>,
        transformations: Option<Vec<Transformation>>,
    }
    GridPos { x: u32, y: u32, w: u32, h: u32 }
    FieldConfigSource { defaults: FieldConfig, overrides: Vec<Override> }
    FieldConfig {
        unit: String,
        decimals: Option<f64>,
        min: Option<f64>,
        max: Option<f64>,
        no_value: String,
        mappings: Vec<Mapping>,
        thresholds: Option<Thresholds>,
        custom: Option<GraphField>,
    }
    Thresholds { mode: ThresholdsMode, steps: Vec<Threshold> }
    Threshold { color: String, value: Option<f64> }
    Override { matcher: Matcher, properties: Vec<Property> }
    Matcher { id: String, options: String }
    MappingResult { text: String, color: Option<String>, index: Option<i32> }
    SpecialMapping { r#match: SpecialMatch, result: MappingResult }
    FieldLink { title: String, url: String, target_blank: bool }
    CellOptions { r#type: CellType }
    GraphField { axis_label: String, span_nulls: bool }
    Target {
        datasource: Datasource,
        expr: String,
        legend_format: String,
        ref_id: String,
        instant: Option<bool>,
        range: Option<bool>,
        format: Option<TargetFormat>,
    }
    Organize {
        exclude_by_name: BTreeMap<String, bool>,
        index_by_name: BTreeMap<String, u32>,
        rename_by_name: BTreeMap<String, String>,
    }
    StatOptions {
        reduce_options: Reduce,
        color_mode: ColorMode,
        graph_mode: GraphMode,
        justify_mode: JustifyMode,
        text_mode: TextMode,
        orientation: Orientation,
    }
    Reduce { calcs: Vec<String>, fields: String, values: bool }
    TableOptions { show_header: bool, cell_height: CellHeight }
    GraphOptions { legend: Legend, tooltip: Tooltip }
    Legend { display_mode: LegendMode, placement: Placement, show_legend: bool, calcs: Vec<String> }
    Tooltip { mode: TooltipMode, sort: Sort }
}

/// Declares sets of words.
macro_rules! words {
    ($($name:ident { $($word:literal = $variant:ident),* })*) => {
        $(
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
            pub enum $name { $(#[serde(rename = $word)] $variant),* }
        )*
    };
}

words! {
    LinkType { "link" = Link, "dashboards" = Dashboards }
    VariableType { "query" = Query, "datasource" = Datasource }
    PanelType { "stat" = Stat, "table" = Table, "timeseries" = Graph }
    ThresholdsMode { "absolute" = Absolute, "percentage" = Percentage }
    SpecialMatch {
        "true" = True, "false" = False, "null" = Null, "nan" = Nan, "null+nan" = NullAndNan, "empty" = Empty
    }
    TargetFormat { "time_series" = Series, "table" = Table, "heatmap" = Heatmap }
    ColorMode { "value" = Value, "background" = Background, "none" = None }
    GraphMode { "none" = None, "area" = Area, "line" = Line }
    JustifyMode { "auto" = Auto, "center" = Center }
    TextMode { "auto" = Auto, "value" = Value, "value_and_name" = Both, "name" = Name, "none" = None }
    Orientation { "auto" = Auto, "vertical" = Vertical, "horizontal" = Horizontal }
    CellHeight { "sm" = Small, "md" = Medium, "lg" = Large }
    CellType { "auto" = Auto, "color-text" = ColorText, "color-background" = ColorBackground }
    LegendMode { "list" = List, "table" = Table, "hidden" = Hidden }
    Placement { "bottom" = Bottom, "right" = Right }
    TooltipMode { "single" = Single, "multi" = Multi, "none" = None }
    Sort { "asc" = Ascending, "desc" = Descending, "none" = None }
}

/// The query of a variable: the type of a data source, or a query with its id.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum VariableQuery {
    Plain(String),
    Prometheus(LabelValues),
}

/// A mapping of values to words.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "options", rename_all = "lowercase", deny_unknown_fields)]
pub enum Mapping {
    Value(BTreeMap<String, MappingResult>),
    Special(SpecialMapping),
}

/// A property of one column.
#[derive(Debug, Deserialize)]
#[serde(tag = "id", content = "value", deny_unknown_fields)]
pub enum Property {
    #[serde(rename = "displayName")]
    DisplayName(String),
    #[serde(rename = "mappings")]
    Mappings(Vec<Mapping>),
    #[serde(rename = "decimals")]
    Decimals(f64),
    #[serde(rename = "links")]
    Links(Vec<FieldLink>),
    #[serde(rename = "custom.cellOptions")]
    CellOptions(CellOptions),
}

/// A change of a table before it is shown.
#[derive(Debug, Deserialize)]
#[serde(tag = "id", content = "options", rename_all = "lowercase", deny_unknown_fields)]
pub enum Transformation {
    Organize(Organize),
}

impl Panel {
    /// Checks the options, which depend on the type of the panel.
    pub fn check_options(&self) -> Result<(), serde_json::Error> {
        let options = self.options.clone();
        match self.r#type {
            PanelType::Stat => serde_json::from_value::<StatOptions>(options).map(drop),
            PanelType::Table => serde_json::from_value::<TableOptions>(options).map(drop),
            PanelType::Graph => serde_json::from_value::<GraphOptions>(options).map(drop),
        }
    }
}
