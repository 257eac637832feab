//! The analysis of one function: the divergence of its values and branches, and of lanes of a warp (`lanes`), by which
//! `divergences` finds barriers that threads may not reach together. `liveness` tells while which registers hold.

mod divergences;
mod lanes;
mod liveness;
mod numbers;

use std::collections::HashMap;

use liveness::Liveness;

use super::bits::{self, Bits};
use super::region::Regions;
use super::value::{Effect, Space, Term, Value, effect, is_place, special};
use super::{Level, Shape};
use crate::{
    Body, ControlFlow, Function, Instruction, Operand, Register, Registers, Statement, StatementKind,
};

/// The summaries of the functions of a program, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// The level of each argument, over all calls.
    pub(super) parameters: Vec<Level>,
    /// The level of its result.
    pub(super) result: Level,
    /// The level that the path to a call requires, if the function contains barriers.
    pub(super) needs: Option<Level>,
    /// Whether no call of it returns (`.noreturn`).
    pub(super) never_returns: bool,
    /// The blocks that run it.
    pub(super) shape: Shape,
}

/// The level that the path to each statement requires by itself.
pub(super) type Needs = fn(&Statement<'_>) -> Option<Level>;

/// What every analysis of a function reads: it depends on the text alone.
pub(super) struct Facts<'t> {
    pub(super) registers: Registers<'t>,
    /// The effect of each statement on its result.
    effects: Vec<Effect>,
    /// The special registers that each statement reads.
    special: Vec<Vec<&'t str>>,
}

impl<'t> Facts<'t> {
    pub(super) fn of(body: &Body<'t>) -> Self {
        let registers = Registers::of(body);
        let special_of = |(at, statement): (usize, &Statement<'t>)| {
            let names = statement.instruction().map(Instruction::uses).unwrap_or_default().into_iter();
            names.filter(|name| special(name).is_some() && registers.named(at, name).is_none()).collect()
        };
        let special = body.statements.iter().enumerate().map(special_of).collect();
        let effect_of = |it: &Statement<'t>| it.instruction().map_or(Effect::Function, effect);
        Facts { effects: body.statements.iter().map(effect_of).collect(), registers, special }
    }
}

/// The state of the analysis of a function.
pub(super) struct Analysis<'b, 't> {
    function: &'b Function<'t>,
    body: &'b Body<'t>,
    summaries: &'b HashMap<&'t str, Summary>,
    needs: Needs,
    shape: Shape,
    registers: &'b Registers<'t>,
    effects: &'b [Effect],
    special: &'b [Vec<&'t str>],
    regions: Regions,
    values: Vec<Value<'t>>,
    /// The level of each register whose value is not a sum.
    levels: Vec<Level>,
    /// The bits of each register; unknown if lanes are not tracked.
    bits: Vec<Bits>,
    follows_lanes: bool,
    /// The branch that makes a register divergent by different values on its paths.
    parted_by: Vec<Option<usize>>,
    /// Whether lanes of a warp diverge at that branch.
    is_mixed: Vec<bool>,
    /// Whether a register has one value for the thread's lifetime, so that threads that read it in different
    /// iterations of a loop read the same.
    is_fixed: Vec<bool>,
    /// The level at which threads reach a block together.
    apart: Vec<Level>,
    /// The level of local memory.
    local: Level,
    /// The call whose result a statement loads.
    call_of: HashMap<usize, usize>,
    /// The statements that store the arguments of a call, by statement of the call and number of the argument.
    stores_of: HashMap<(usize, usize), Vec<usize>>,
    /// The registers whose sums had the register as a term.
    made_of: Vec<Vec<Register>>,
    liveness: Liveness,
}

impl<'b, 't> Analysis<'b, 't> {
    pub(super) fn of(
        function: &'b Function<'t>,
        body: &'b Body<'t>,
        facts: &'b Facts<'t>,
        summaries: &'b HashMap<&'t str, Summary>,
        needs: Needs,
        follows_lanes: bool,
    ) -> Self {
        let never_returns = |call: &Instruction<'_>| {
            call.callee().and_then(|callee| summaries.get(callee)).is_some_and(|callee| callee.never_returns)
        };
        let waits = |at: usize| needed(&body.statements[at], needs, summaries).is_some();
        let regions = Regions::of(body, ControlFlow::of(body, never_returns), waits);
        let count = facts.registers.len();
        let apart = vec![Level::Grid; regions.flow.blocks.len()];
        let mut analysis = Analysis {
            function,
            body,
            summaries,
            needs,
            shape: summaries.get(function.name).map_or([None; 3], |own| own.shape),
            registers: &facts.registers,
            effects: &facts.effects,
            special: &facts.special,
            regions,
            values: vec![Value::Unknown; count],
            levels: vec![Level::Grid; count],
            bits: vec![if follows_lanes { Bits::NONE } else { Bits::ANY }; count],
            follows_lanes,
            parted_by: vec![None; count],
            is_mixed: vec![false; count],
            is_fixed: vec![false; count],
            apart,
            // Another function's local memory, behind a pointer, is unknown.
            local: if function.is_entry { Level::Grid } else { Level::Thread },
            call_of: HashMap::new(),
            stores_of: HashMap::new(),
            made_of: vec![Vec::new(); count],
            liveness: Liveness::default(),
        };
        analysis.find_arguments();
        analysis.find_fixed();
        analysis
    }

    /// Connects calls with the statements that store their arguments and load their results.
    fn find_arguments(&mut self) {
        let mut stores: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut calls: HashMap<&str, usize> = HashMap::new();
        for (at, statement) in self.body.statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Declaration(declaration) if declaration.space == ".param" => {
                    for declared in &declaration.names {
                        stores.remove(declared.name);
                        calls.remove(declared.name);
                    }
                }
                StatementKind::Instruction(instruction) if instruction.opcode.starts_with("st.param") => {
                    if let Some((name, _)) = instruction.operands.first().and_then(Operand::address) {
                        stores.entry(name).or_default().push(at);
                    }
                }
                StatementKind::Instruction(instruction) if instruction.opcode.starts_with("ld.param") => {
                    let place = instruction.operands.get(1).and_then(Operand::address);
                    if let Some(call) = place.and_then(|(name, _)| calls.get(name)) {
                        self.call_of.insert(at, *call);
                    }
                }
                StatementKind::Instruction(instruction) if instruction.operation() == "call" => {
                    for (number, argument) in instruction.arguments().iter().enumerate() {
                        let stored =
                            argument.name().and_then(|name| stores.get(name)).cloned().unwrap_or_default();
                        self.stores_of.insert((at, number), stored);
                    }
                    instruction.definitions().into_iter().for_each(|name| {
                        calls.insert(name, at);
                    });
                }
                _ => {}
            }
        }
    }

    /// Finds the registers with one definition that depends on constants, parameters and thread indices only.
    fn find_fixed(&mut self) {
        let mut open: Vec<Register> = (0..self.registers.len()).rev().map(Register).collect();
        while let Some(register) = open.pop() {
            if self.is_fixed[register.0] || !self.stays(register) {
                continue;
            }
            self.is_fixed[register.0] = true;
            let uses = self.registers.uses(register).iter();
            open.extend(uses.flat_map(|&at| self.registers.defined_by(at)));
        }
    }

    fn stays(&self, register: Register) -> bool {
        let [at] = self.registers.definitions(register) else { return false };
        let Some(instruction) = self.body.statements[*at].instruction() else { return false };
        let is_function = match self.effects[*at] {
            Effect::Sum(_) | Effect::Equality | Effect::Function => true,
            Effect::Load(Space::Parameter) => !self.call_of.contains_key(at),
            Effect::Load(_) | Effect::Differs(_) | Effect::Exchanged => false,
        };
        instruction.predicate.is_none()
            && is_function
            && self.registers.used_by(*at).iter().all(|register| self.is_fixed[register.0])
            && self.special[*at].iter().all(|name| is_place(name))
    }

    /// Iterates over values and branches to a fixed point.
    pub(super) fn run(&mut self) {
        let mut open: Vec<usize> = (0..self.body.statements.len()).rev().collect();
        let mut is_open = vec![true; self.body.statements.len()];
        while let Some(at) = open.pop() {
            is_open[at] = false;
            let mut changed = Vec::new();
            let Some(instruction) = self.body.statements[at].instruction() else { continue };
            for index in 0..self.registers.defined_by(at).len() {
                let register = self.registers.defined_by(at)[index];
                if self.update(register) | self.update_bits(register) {
                    changed.push(register);
                }
            }
            let mut again: Vec<usize> = Vec::new();
            if self.decides(at, instruction) {
                again.extend(self.part(at, instruction, &mut changed));
            }
            if self.store(at, instruction) {
                let loads = (0..self.body.statements.len()).filter(|&it| {
                    self.body.statements[it].instruction().is_some_and(|it| it.opcode.starts_with("ld.local"))
                });
                again.extend(loads);
            }
            let dependents = changed.iter().flat_map(|&register| self.dependents(register));
            again.extend(dependents.flat_map(|register| self.registers.uses(register)));
            for statement in again {
                if !std::mem::replace(&mut is_open[statement], true) {
                    open.push(statement);
                }
            }
        }
    }

    /// The registers to recompute when one has changed: itself, and those that have it as a term.
    fn dependents(&self, register: Register) -> impl Iterator<Item = Register> {
        self.made_of[register.0].iter().copied().chain([register])
    }

    /// Whether a statement is a divergent branch.
    fn decides(&self, at: usize, instruction: &Instruction<'_>) -> bool {
        let is_branch = matches!(instruction.operation(), "bra" | "ret") && instruction.predicate.is_some()
            || instruction.operation() == "brx";
        is_branch && self.regions.part_at(self.regions.flow.block_of(at))
    }

    /// The level of a branch's condition.
    fn level_of_branch(&self, at: usize, instruction: &Instruction<'_>) -> Level {
        match instruction.predicate {
            Some(predicate) => self.level_of_name(at, predicate.register),
            None => {
                instruction.operands.first().map_or(Level::Grid, |index| self.level_of_operand(at, index))
            }
        }
    }

    /// Records that threads may diverge at a branch: the statements to recompute, and the registers that become divergent.
    fn part(&mut self, at: usize, instruction: &Instruction<'_>, changed: &mut Vec<Register>) -> Vec<usize> {
        let level = self.level_of_branch(at, instruction);
        if level == Level::Grid {
            return Vec::new();
        }
        let branch = self.regions.flow.block_of(at);
        let between = self.regions.between(branch);
        let mut again = Vec::new();
        let mut inside = vec![false; self.apart.len()];
        between.iter().for_each(|&block| inside[block] = true);
        for &block in &between {
            if self.apart[block] < level {
                self.apart[block] = level;
                again.extend(self.regions.flow.blocks[block].statements.clone());
            }
        }
        for &block in &between {
            for statement in self.regions.flow.blocks[block].statements.clone() {
                for index in 0..self.registers.defined_by(statement).len() {
                    let register = self.registers.defined_by(statement)[index];
                    let has_others = !self.is_fixed[register.0]
                        && (self.registers.definitions(register).len() > 1 || inside[branch]);
                    let is_used_behind = || {
                        self.registers
                            .uses(register)
                            .iter()
                            .any(|&it| !inside[self.regions.flow.block_of(it)])
                    };
                    if has_others
                        && (self.parted_by[register.0].is_none() || self.levels[register.0] < level)
                        && is_used_behind()
                        && !self.leaves_as_one_number(register, branch, &inside)
                    {
                        self.parted_by[register.0] = Some(at);
                        self.is_mixed[register.0] |= level > Level::Warp;
                        if self.make_term(register, level) | self.update_bits(register) {
                            changed.push(register);
                        }
                    }
                }
            }
        }
        again
    }

    /// Records a store to local memory; returns whether the state changes.
    fn store(&mut self, at: usize, instruction: &Instruction<'_>) -> bool {
        let may_be_local = match instruction.operation() {
            "st" => {
                instruction.has("local")
                    || !["global", "shared", "param", "const"].iter().any(|it| instruction.has(it))
            }
            // A function may write memory whose address it gets.
            "call" => !instruction.arguments().is_empty(),
            _ => false,
        };
        let block = self.regions.flow.block_of(at);
        // A store before a panic is never read.
        if !may_be_local || !self.regions.is_live(block) {
            return false;
        }
        let level = if instruction.operation() == "call" {
            Level::Thread
        } else {
            self.level_of_uses(at).max(self.apart[block])
        };
        let has_changed = level > self.local;
        self.local = self.local.max(level);
        has_changed
    }

    /// Recomputes the value of a register from its definitions; returns whether it changes.
    fn update(&mut self, register: Register) -> bool {
        if self.parted_by[register.0].is_some()
            || self.values[register.0] == Value::term(Term::Register(register))
        {
            let level = self.level_of_definitions(register);
            return self.make_term(register, level);
        }
        let mut found = Value::Unknown;
        for index in 0..self.registers.definitions(register).len() {
            let at = self.registers.definitions(register)[index];
            match (self.made_by(at), &found) {
                (None, _) => {
                    let level = self.level_of_definitions(register);
                    return self.make_term(register, level);
                }
                (Some(Value::Unknown), _) => {}
                (Some(value), Value::Unknown) => found = value,
                (Some(value), known) if value == *known => {}
                _ => {
                    let level = self.level_of_definitions(register);
                    return self.make_term(register, level);
                }
            }
        }
        let known = &self.values[register.0];
        if found == Value::Unknown || found == *known {
            return false;
        }
        if *known != Value::Unknown && *known != Value::same() {
            let level = self.level_of_definitions(register).max(self.level_of(known));
            return self.make_term(register, level);
        }
        let terms: Vec<Register> = found.registers().collect();
        if terms.iter().any(|&term| self.outlasts(register, term)) {
            let level = self.level_of_definitions(register);
            return self.make_term(register, level);
        }
        terms.iter().for_each(|term| self.made_of[term.0].push(register));
        self.values[register.0] = found;
        true
    }

    /// Whether a register may be read after one of its terms was reassigned.
    fn outlasts(&mut self, register: Register, term: Register) -> bool {
        let Analysis { registers, body, regions, liveness, .. } = self;
        let mut definitions = registers.definitions(term).iter();
        definitions.any(|&at| liveness.outlasts(register, at, body, registers, &regions.flow))
    }

    /// Gives the register a level as an opaque value.
    fn make_term(&mut self, register: Register, level: Level) -> bool {
        let value = if level == Level::Grid && self.parted_by[register.0].is_none() {
            Value::same()
        } else {
            Value::term(Term::Register(register))
        };
        // A term stays a term.
        let is_term = self.values[register.0] == Value::term(Term::Register(register));
        let has_changed = level > self.levels[register.0] || (!is_term && self.values[register.0] != value);
        self.levels[register.0] = self.levels[register.0].max(level);
        if !is_term {
            self.values[register.0] = value;
        }
        has_changed
    }

    /// The value that a statement assigns, as a sum; `None` if it is not a sum, or is assigned under a condition.
    fn made_by(&self, at: usize) -> Option<Value<'t>> {
        let instruction = self.body.statements[at].instruction().filter(|it| it.predicate.is_none())?;
        let factors = match &self.effects[at] {
            Effect::Sum(factors) => factors,
            _ if self.level_of_definition(at, instruction) == Level::Grid => {
                let is_known =
                    self.registers.used_by(at).iter().all(|it| self.values[it.0] != Value::Unknown);
                return Some(if is_known { Value::same() } else { Value::Unknown });
            }
            _ => return None,
        };
        let mut sources = instruction.operands[1..].iter().zip(factors).filter(|(_, factor)| **factor != 0);
        sources.try_fold(Value::same(), |sum, (source, factor)| {
            Some(sum.combined(1, &self.value_of(at, source)?, *factor))
        })
    }

    /// An operand as a sum; `None` for values that do not last: a clock, or an element of a vector.
    fn value_of(&self, at: usize, operand: &Operand<'t>) -> Option<Value<'t>> {
        Some(match operand {
            Operand::Offset(two) => self.value_of(at, &two[0])?,
            Operand::Generic(inner) => self.value_of(at, inner)?,
            Operand::Name(name) => match self.registers.named(at, name) {
                Some(register) if self.registers.definitions(register).is_empty() => Value::same(),
                Some(register) => self.values[register.0].clone(),
                None => match special(name) {
                    Some(Level::Grid) => Value::same(),
                    Some(_) if is_place(name) => Value::term(Term::Special(name)),
                    Some(_) => return None,
                    None if self.is_element(at, name) => return None,
                    None => Value::same(),
                },
            },
            _ => Value::same(),
        })
    }

    /// Whether a name is an element of a vector register.
    fn is_element(&self, at: usize, name: &str) -> bool {
        let vector = name.rsplit_once('.').map(|(vector, _)| vector);
        vector.is_some_and(|vector| self.registers.named(at, vector).is_some())
    }

    fn level_of(&self, value: &Value<'_>) -> Level {
        let Value::Sum(terms) = value else { return Level::Grid };
        let levels = terms.iter().map(|(term, _)| match term {
            Term::Special(name) => self.level_of_special(name).unwrap_or(Level::Thread),
            Term::Register(register) => self.limited(self.levels[register.0], self.bits[register.0]),
        });
        levels.max().unwrap_or_default()
    }

    /// The level, or `Warp` if the lanes of a warp have all bits in common.
    fn limited(&self, level: Level, bits: Bits) -> Level {
        if bits.varies == 0 { level.min(Level::Warp) } else { level }
    }

    fn level_of_special(&self, name: &str) -> Option<Level> {
        let level = special(name)?;
        Some(bits::special(name, self.shape).map_or(level, |bits| self.limited(level, bits)))
    }

    fn level_of_register(&self, register: Register) -> Level {
        self.limited(self.level_of(&self.values[register.0]), self.bits[register.0])
    }

    fn level_of_name(&self, at: usize, name: &str) -> Level {
        match self.registers.named(at, name) {
            Some(register) => self.level_of_register(register),
            None => self.level_of_special(name).unwrap_or_default(),
        }
    }

    fn level_of_operand(&self, at: usize, operand: &Operand<'_>) -> Level {
        operand.names().into_iter().map(|name| self.level_of_name(at, name)).max().unwrap_or_default()
    }

    /// The level of the values that a statement reads.
    fn level_of_uses(&self, at: usize) -> Level {
        let registers = self.registers.used_by(at).iter().map(|&register| self.level_of_register(register));
        let special = self.special[at].iter().map(|name| self.level_of_special(name).unwrap_or_default());
        registers.chain(special).max().unwrap_or_default()
    }

    /// The level of a statement's result.
    fn level_of_definition(&self, at: usize, instruction: &Instruction<'t>) -> Level {
        let of_uses = self.level_of_uses(at);
        match self.effects[at] {
            Effect::Differs(level) => level.max(if level < Level::Thread { Level::Grid } else { of_uses }),
            Effect::Exchanged if self.names_all(at, instruction) => Level::Warp,
            Effect::Exchanged => Level::Thread,
            Effect::Equality => {
                let [a, b] = [1, 2].map(|operand| self.value_of(at, &instruction.operands[operand]));
                let (Some(a), Some(b)) = (a, b) else { return of_uses };
                let of_condition =
                    instruction.predicate.map_or(Level::Grid, |it| self.level_of_name(at, it.register));
                self.level_of(&a.combined(1, &b, -1)).max(of_condition)
            }
            Effect::Load(Space::Other) => Level::Thread,
            Effect::Load(Space::Local) => of_uses.max(self.local),
            Effect::Load(Space::Parameter) => of_uses.max(self.level_of_parameter(at, instruction)),
            Effect::Load(Space::Shared) => of_uses.max(Level::Block),
            Effect::Load(Space::ReadOnly) | Effect::Sum(_) | Effect::Function => of_uses,
        }
    }

    /// The level of a loaded parameter: of this function, or of a callee's result.
    fn level_of_parameter(&self, at: usize, instruction: &Instruction<'_>) -> Level {
        if let Some(&call) = self.call_of.get(&at) {
            let callee = self.body.statements[call].instruction().and_then(Instruction::callee);
            return callee
                .and_then(|callee| self.summaries.get(callee))
                .map_or(Level::Thread, |it| it.result);
        }
        if self.function.is_entry {
            return Level::Grid;
        }
        let name = instruction.operands.get(1).and_then(Operand::address).map(|(name, _)| name);
        let number = self.function.parameters().iter().position(|parameter| Some(parameter.name()) == name);
        let own = self.summaries.get(self.function.name);
        number.and_then(|number| own?.parameters.get(number).copied()).unwrap_or(Level::Thread)
    }

    fn level_of_definitions(&self, register: Register) -> Level {
        let definitions = self.registers.definitions(register).iter();
        let levels = definitions
            .filter_map(|&at| Some(self.level_of_definition(at, self.body.statements[at].instruction()?)));
        levels.max().unwrap_or_default().max(self.levels[register.0])
    }

    /// The levels of the arguments of its calls: callee, number of the argument, level.
    pub(super) fn arguments(&self) -> Vec<(&'t str, usize, Level)> {
        let mut found = Vec::new();
        for (&(at, number), stores) in &self.stores_of {
            let Some(call) = self.body.statements[at].instruction() else { continue };
            let of_stores = stores.iter().map(|&at| self.level_of_uses(at));
            // An argument may also be a register itself.
            let itself = call.arguments().get(number).map(|argument| self.level_of_operand(at, argument));
            let level = of_stores.chain(itself).max().unwrap_or_default();
            found.extend(call.callee().map(|callee| (callee, number, level)));
        }
        found
    }

    /// The level of its result.
    pub(super) fn result(&self) -> Level {
        let Some(returned) = self.function.returned.as_ref().and_then(|list| list.items.first()) else {
            return Level::Grid;
        };
        let stores = self.body.statements.iter().enumerate().filter_map(|(at, statement)| {
            let instruction = statement.instruction().filter(|it| it.opcode.starts_with("st.param"))?;
            let (name, _) = instruction.operands.first()?.address()?;
            let level = || self.level_of_uses(at).max(self.apart[self.regions.flow.block_of(at)]);
            (name == returned.name()).then(level)
        });
        stores.max().unwrap_or_default()
    }
}

/// The level that the path to a statement requires: by itself, or as a call of a function with such a statement.
pub(super) fn needed(
    statement: &Statement<'_>,
    needs: Needs,
    summaries: &HashMap<&str, Summary>,
) -> Option<Level> {
    needs(statement).or_else(|| summaries.get(statement.instruction()?.callee()?)?.needs)
}
