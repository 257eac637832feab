//! The `[patch]` tables of a workspace, as far as they were used: dependencies whose source was replaced.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Dependency, Graph, is_crates_io, list};

/// By the key of a source in `[patch]`: the packages that replace its packages.
pub(crate) type Patches = BTreeMap<String, Vec<Dependency>>;

/// The patches in the workspace's `manifest` that apply to dependencies of the packages `ids`. The inner
/// cargo finds those of a configuration file itself, and refuses them twice.
pub(super) fn patches<'a>(
    graph: &Graph<'a>,
    ids: impl IntoIterator<Item = &'a str>,
    manifest: &str,
) -> Patches {
    let tables = manifest.find("[patch").map_or("", |start| &manifest[start..]);
    let mut found = Patches::new();
    for id in ids {
        let Some(package) = graph.packages.get(id) else { continue };
        for edge in graph.edges(id).filter(|edge| !edge.for_tests) {
            let Some(resolved) = graph.packages.get(edge.package) else { continue };
            if !resolved["name"].as_str().is_some_and(|name| tables.contains(name)) {
                continue;
            }
            let Some(wanted) = wanted(package, resolved) else { continue };
            let known = found.entry(wanted).or_default();
            if !known.iter().any(|it| it.id == edge.package) {
                known.extend(graph.dependency(edge.package));
            }
        }
    }
    found
}

/// The source that `package` declares for a dependency that was resolved to another one.
fn wanted(package: &Value, resolved: &Value) -> Option<String> {
    let declared = list(package, "dependencies").iter().filter(|it| it["name"] == resolved["name"]);
    let sources: Vec<&str> = declared.map(|it| it["source"].as_str()).collect::<Option<_>>()?;
    let taken = resolved["source"].as_str().map(|source| source.split('#').next().unwrap_or(source));
    if sources.iter().any(|source| Some(*source) == taken) {
        return None;
    }
    let source = sources.first()?;
    if is_crates_io(source) {
        return Some("crates-io".to_owned());
    }
    let url = source.strip_prefix("git+").or_else(|| source.strip_prefix("registry+")).unwrap_or(source);
    Some(url.split('?').next().unwrap_or(url).to_owned())
}
