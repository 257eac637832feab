//! The architectures that each module is compiled for: those of the build, or those that the module names.

use crate::options::Arch;

/// The architectures of a build, and whether modules may choose others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchChoice {
    /// Those of modules that name none.
    pub(crate) general: Vec<Arch>,
    pub(crate) origin: Origin,
}

/// Where the architectures of a build were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The package, or the default: the list of a module wins.
    Package,
    /// `FERROGRID_ARCH`: it selects from the list of a module.
    Variable,
    /// A tool, which requires this very architecture.
    Tool,
}

impl ArchChoice {
    /// The architectures of a module that names `named`.
    pub(crate) fn of_module(&self, named: &[Arch]) -> Vec<Arch> {
        match self.origin {
            _ if named.is_empty() => self.general.clone(),
            Origin::Package => named.to_vec(),
            Origin::Variable => self.selected(named),
            Origin::Tool => self.general.clone(),
        }
    }

    /// For each architecture of the build the newest of `named` that its devices run, or the architecture itself
    /// in its place; `named` if none of them runs on any.
    fn selected(&self, named: &[Arch]) -> Vec<Arch> {
        let mut selected: Vec<Arch> = Vec::new();
        let mut wanted = self.general.clone();
        wanted.sort_by_key(Arch::order);
        for arch in wanted {
            let runs = |it: &&Arch| it.runs_on(arch.capability());
            let Some(newest) = named.iter().filter(runs).max_by_key(|it| it.order()) else { continue };
            let has_code = selected.iter().filter(runs).any(|it| it.extends(newest));
            if named.contains(&arch) || (arch.extends(newest) && !has_code) {
                selected.push(arch);
            } else if !has_code {
                selected.push(newest.clone());
            }
        }
        if selected.is_empty() { named.to_vec() } else { selected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> Vec<Arch> {
        Arch::parse_list(names).unwrap()
    }

    fn chosen(origin: Origin, general: &str, named: &str) -> String {
        let named = if named.is_empty() { Vec::new() } else { list(named) };
        let archs = ArchChoice { general: list(general), origin }.of_module(&named);
        archs.iter().map(Arch::as_str).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_module_wins_over_its_package_and_a_tool_over_both() {
        assert_eq!(chosen(Origin::Package, "sm_90,sm_75", ""), "sm_90,sm_75");
        assert_eq!(chosen(Origin::Package, "sm_75,sm_90", "sm_75"), "sm_75");
        assert_eq!(chosen(Origin::Package, "sm_75", "sm_90a"), "sm_90a");
        assert_eq!(chosen(Origin::Tool, "sm_90", "sm_75"), "sm_90");
        assert_eq!(chosen(Origin::Tool, "sm_75", "sm_90a"), "sm_75");
    }

    #[test]
    fn the_variable_selects_from_a_module_so_that_its_devices_have_code() {
        for (variable, named, expected) in [
            ("sm_75,sm_90", "", "sm_75,sm_90"),
            // What it asks for, if the module has it.
            ("sm_75,sm_90", "sm_75", "sm_75"),
            ("sm_75", "sm_75,sm_90", "sm_75"),
            ("sm_90", "sm_75,sm_90", "sm_90"),
            ("sm_75,sm_90", "sm_90", "sm_90"),
            // A later architecture in place of the module's, once.
            ("sm_90", "sm_75", "sm_90"),
            ("sm_90,sm_80", "sm_75", "sm_80"),
            ("sm_80,sm_90", "sm_75,sm_90", "sm_80,sm_90"),
            // Instructions of `sm_90a` are in no other architecture.
            ("sm_90", "sm_90a", "sm_90a"),
            ("sm_75,sm_90", "sm_75,sm_90a", "sm_75,sm_90a"),
            ("sm_90a", "sm_90", "sm_90a"),
            ("sm_103", "sm_100f,sm_90a", "sm_100f"),
            // Nothing in the module runs there.
            ("sm_75", "sm_90a", "sm_90a"),
            ("sm_80", "sm_90", "sm_90"),
        ] {
            assert_eq!(chosen(Origin::Variable, variable, named), expected, "{variable} of {named}");
        }
    }
}
