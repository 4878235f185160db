//! The files for containers: what Kubernetes' schema says of one of them, and whether all grant the same rights.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Service};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const DAEMONSET: &str = include_str!("../../packaging/containers/daemonset.yaml");
const COMPOSE: &str = include_str!("../../packaging/containers/compose.yaml");
const QUADLET: &str = include_str!("../../packaging/containers/tracer-serve.container");
const UNIT: &str = include_str!("../../dashboards/systemd/tracer-serve.service");
/// Capabilities of the unit that tracer uses if it has them, and does without in containers.
const OF_USE: [&str; 2] = ["SYS_RESOURCE", "SYS_NICE"];
/// Fields whose fields have names that the user chooses.
const CHOSEN: [&str; 5] = ["labels", "matchLabels", "selector", "requests", "limits"];

/// Returns the objects of the file for Kubernetes.
fn objects() -> Vec<Value> {
    let documents = serde_yaml_ng::Deserializer::from_str(DAEMONSET);
    documents.map(|one| Value::deserialize(one).expect("YAML")).collect()
}

/// Reads an object by the schema, and writes it again. Returns the difference.
fn through<T: DeserializeOwned + Serialize>(object: &Value) -> Result<(), String> {
    let typed: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    if again == *object {
        Ok(())
    } else {
        Err(format!("{object}\nbecomes\n{again}"))
    }
}

fn by_schema(object: &Value) -> Result<(), String> {
    match object["kind"].as_str() {
        Some("Namespace") => through::<Namespace>(object),
        Some("DaemonSet") => through::<DaemonSet>(object),
        Some("Service") => through::<Service>(object),
        kind => Err(format!("the kind {kind:?}")),
    }
}

/// Returns the pointers of all fields that the schema names.
fn fields(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                found.push((at.to_owned(), name.clone()));
                // The selector of a DaemonSet is an object of the schema.
                let is_chosen = CHOSEN.contains(&name.as_str()) && inner.get("matchLabels").is_none();
                if !is_chosen {
                    fields(inner, &format!("{at}/{name}"), found);
                }
            }
        }
        Value::Array(list) => {
            for (place, inner) in list.iter().enumerate() {
                fields(inner, &format!("{at}/{place}"), found);
            }
        }
        _ => {}
    }
}

/// Every field is one of the schema, with its type.
#[test]
fn the_schema_of_kubernetes_has_every_field() {
    let objects = objects();
    assert_eq!(objects.len(), 3);
    for object in objects {
        by_schema(&object).expect("nothing gets lost");
    }
}

/// The check finds an error in any field's name.
#[test]
fn no_field_can_be_misspelt() {
    let mut tried = 0;
    for object in objects() {
        let mut all = Vec::new();
        fields(&object, "", &mut all);
        for (at, name) in all {
            let mut wrong = object.clone();
            let map = wrong
                .pointer_mut(&at)
                .and_then(Value::as_object_mut)
                .expect("the object");
            let value = map.remove(&name).expect("the field");
            map.insert(format!("{name}s"), value);
            assert!(by_schema(&wrong).is_err(), "{at}: {name}s was not noticed");
            tried += 1;
        }
    }
    assert!(tried > 80, "{tried} fields");
}

/// Returns the one container of the DaemonSet.
fn container() -> Value {
    let objects = objects();
    let daemonset = objects.iter().find(|object| object["kind"] == "DaemonSet").expect("it");
    daemonset["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn the_image_has_the_version() {
    let expected = format!("registry.example/tracer:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container()["image"], expected);
}

fn names(list: &Value) -> BTreeSet<String> {
    let list = list.as_array().expect("a list");
    list.iter()
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect()
}

/// Returns the capabilities in a line of a unit.
fn in_line(unit: &str, key: &str) -> BTreeSet<String> {
    let line = unit.lines().find_map(|line| line.strip_prefix(key)).expect("the key");
    line.split_whitespace()
        .map(|name| name.trim_start_matches("CAP_").to_owned())
        .collect()
}

/// `tests/faults/tests/rights.rs` compares the service with the program.
#[test]
fn all_grant_the_capabilities_of_the_service() {
    let mut needed = in_line(UNIT, "CapabilityBoundingSet=");
    for name in OF_USE {
        assert!(needed.remove(name), "{name}");
    }
    assert_eq!(in_line(QUADLET, "AddCapability="), needed);
    assert_eq!(names(&container()["securityContext"]["capabilities"]["add"]), needed);
    let compose: Value = serde_yaml_ng::from_str(COMPOSE).expect("YAML");
    assert_eq!(names(&compose["services"]["tracer"]["cap_add"]), needed);
    // And nothing else.
    let all = |name: &str| BTreeSet::from([name.to_owned()]);
    assert_eq!(in_line(QUADLET, "DropCapability="), all("all"));
    assert_eq!(
        names(&container()["securityContext"]["capabilities"]["drop"]),
        all("ALL")
    );
    assert_eq!(names(&compose["services"]["tracer"]["cap_drop"]), all("ALL"));
    assert!(container()["securityContext"].get("privileged").is_none());
    assert!(compose["services"]["tracer"].get("privileged").is_none());
    assert!(!QUADLET.contains("--privileged"));
}
