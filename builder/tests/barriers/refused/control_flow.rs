//! Divergence by each of Rust's forms of control flow: some threads miss a barrier. `accepted/control_flow.rs` is the
//! same with uniform conditions.

/// Branches.
#[ferrogrid::module]
mod branches {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn if_without_else(t: Thread<1>) {
        let own = t.thread_rank();
        if own > 7 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn else_of_an_if(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        if own > 7 { y[0].store(1, atomic::Ordering::Relaxed); } else { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn both_arms(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        if own > 7 {
            y[0].store(1, atomic::Ordering::Relaxed);
            t.sync_threads(); //~ block
        } else {
            y[1].store(1, atomic::Ordering::Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn chain_of_else_ifs(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        if n > 100 {
            y[0].store(1, atomic::Ordering::Relaxed);
        } else if n > 50 {
            y[1].store(1, atomic::Ordering::Relaxed);
        } else if own > 20 {
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn arms_of_a_match(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        match own {
            0 => y[0].store(1, atomic::Ordering::Relaxed),
            1 | 3 => t.sync_threads(), //~ block
            5..=9 => y[1].store(1, atomic::Ordering::Relaxed),
            _ => {}
        }
    }
    #[kernel]
    pub fn guard_of_a_match(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        match n {
            0..=4 if own > 2 => t.sync_threads(), //~ block
            _ => {}
        }
    }
    #[kernel]
    pub fn table_of_a_match(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        match own & 7 {
            0 => y[0].store(11, atomic::Ordering::Relaxed),
            1 => y[3].store(12, atomic::Ordering::Relaxed),
            2 => y[5].store(13, atomic::Ordering::Relaxed),
            3 => y[2].store(14, atomic::Ordering::Relaxed),
            4 => y[9].store(15, atomic::Ordering::Relaxed),
            5 => t.sync_threads(), //~ block
            6 => y[4].store(17, atomic::Ordering::Relaxed),
            _ => y[6].store(18, atomic::Ordering::Relaxed),
        }
    }
    #[kernel]
    pub fn tuple_in_a_match(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        match (n > 3, own > 3) {
            (true, true) | (false, false) => t.sync_threads(), //~ block
            _ => {}
        }
    }
    #[kernel]
    pub fn let_else(t: Thread<1>) {
        let own = t.thread_rank();
        let Some(_left) = own.checked_sub(3) else { return };
        t.sync_threads(); //~ block
    }
    #[kernel]
    pub fn if_let(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        if let Some(_) = x.get(own as usize) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn chain_of_lets(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        if n > 3 && let Some(&v) = x.get(own as usize) && v > n { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn early_return(t: Thread<1>) {
        let own = t.thread_rank();
        if own == 0 { return; }
        t.sync_threads(); //~ block
    }
    #[kernel]
    pub fn return_between_barriers(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        t.sync_threads();
        if own % 3 == 0 { return; }
        y[0].fetch_add(1, atomic::Ordering::Relaxed);
        t.sync_threads(); //~ block
    }
    #[kernel]
    pub fn labelled_block(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        'work: {
            if n > 8 { break 'work; }
            if own > 8 { break 'work; }
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn value_of_a_labelled_block(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        let rounds = 'found: { if own < n { break 'found 2; } 3 };
        for _ in 0..rounds { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn and_that_ends_early(t: Thread<1>) {
        let own = t.thread_rank();
        let wait = || { t.sync_threads(); true }; //~ block
        let _ = own > 5 && wait();
    }
    #[kernel]
    pub fn or_that_ends_early(t: Thread<1>) {
        let own = t.thread_rank();
        let wait = || { t.sync_threads(); true }; //~ block
        let _ = own > 5 || wait();
    }
    #[kernel]
    pub fn then_of_a_bool(t: Thread<1>) {
        let own = t.thread_rank();
        (own > 5).then(|| t.sync_threads()); //~ block
    }
    #[kernel]
    pub fn map_of_an_option(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        x.get(own as usize).map(|_| t.sync_threads()); //~ block
    }
    #[kernel]
    pub fn otherwise_of_an_option(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        let v = x.get(own as usize).copied().unwrap_or_else(|| { t.sync_threads(); 7 }); //~ block
        y[0].fetch_add(v, atomic::Ordering::Relaxed);
    }
    #[kernel]
    pub fn filter_of_an_option(t: Thread<1>) {
        let own = t.thread_rank();
        let _ = own.checked_sub(4).filter(|_| { t.sync_threads(); true }); //~ block
    }
    #[kernel]
    pub fn error_of_a_result(t: Thread<1>) {
        let own = t.thread_rank();
        let parted: Result<u32, u32> = if own > 3 { Ok(own) } else { Err(own) };
        let _ = parted.or_else(|e| { t.sync_threads(); Err::<u32, u32>(e) }); //~ block
    }
    fn try_it(t: &Thread<1>, x: Option<u32>) -> Option<u32> {
        let v = x?;
        t.sync_threads(); //~ block
        Some(v)
    }
    #[kernel]
    pub fn question_mark(t: Thread<1>) {
        let own = t.thread_rank();
        let _ = try_it(&t, own.checked_sub(2));
    }
    fn checked(t: &Thread<1>, x: Option<u32>) -> Option<u32> {
        assert!(x? < 1000);
        t.sync_threads(); //~ block
        x
    }
    #[kernel]
    pub fn question_mark_in_assert(t: Thread<1>) {
        let own = t.thread_rank();
        let _ = checked(&t, own.checked_sub(2));
    }
    fn parsed(t: &Thread<1>, x: Result<u32, ()>) -> Result<u32, ()> {
        let sum = x.map_err(|_| ())? + 1;
        t.sync_threads(); //~ block
        Ok(sum)
    }
    #[kernel]
    pub fn question_mark_of_a_result(t: Thread<1>) {
        let own = t.thread_rank();
        let _ = parsed(&t, own.checked_sub(2).ok_or(()));
    }
    #[kernel]
    pub fn min_of_both(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for _ in 0..n.min(own) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn of_floats(t: Thread<1>, x: f32) {
        let own = t.thread_rank();
        if (own as f32 * x).sin() > 0.5 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn nested_branches(t: Thread<1>, n: u32, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        if own > 9 {
            y[0].store(1, atomic::Ordering::Relaxed);
            if n > 9 { t.sync_threads(); } //~ block
            y[1].store(1, atomic::Ordering::Relaxed);
        }
    }
}

/// Loops.
#[ferrogrid::module]
mod loops {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn for_over_a_range(t: Thread<1>) {
        let own = t.thread_rank();
        for _ in 0..own { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn for_over_an_inclusive_range(t: Thread<1>) {
        let own = t.thread_rank();
        for _ in 0..=own { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn from_where_a_thread_is(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for _ in own..n { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn backwards(t: Thread<1>) {
        let own = t.thread_rank();
        for _ in (0..own).rev() { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn by_steps(t: Thread<1>, n: usize) {
        let own = t.thread_rank();
        for _ in (own as usize..n).step_by(64) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn over_a_slice(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        for v in &x[own as usize..] {
            y[0].fetch_add(*v, atomic::Ordering::Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn over_chunks(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        for four in x[..own as usize].chunks(4) {
            y[0].fetch_add(four[0], atomic::Ordering::Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn over_windows(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        for two in x[..own as usize].windows(2) {
            y[0].fetch_add(two[1], atomic::Ordering::Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn take_so_many(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        for v in x.iter().take(own as usize) { let _ = v; t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn skip_so_many(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        for v in x.iter().skip(own as usize) {
            y[0].fetch_add(*v, atomic::Ordering::Relaxed);
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn zip_with_fewer(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for _ in (0..n).zip(0..own) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn chained_ranges(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for _ in (0..n).chain(0..own) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn filtered(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for _ in (0..n).filter(|i| i & own != 0) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn take_while(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        for _ in (0..n).take_while(|&i| x[i as usize] < own) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn successors(t: Thread<1>) {
        let own = t.thread_rank();
        for _ in core::iter::successors(Some(own), |n| (*n > 1).then_some(n / 2)) { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn iterator_from_a_function(t: Thread<1>) {
        let mut own = t.thread_rank();
        let left = core::iter::from_fn(|| { own = own.checked_sub(3)?; Some(own) });
        for _ in left { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn for_each(t: Thread<1>) {
        let own = t.thread_rank();
        (0..own).for_each(|_| t.sync_threads()); //~ block
    }
    #[kernel]
    pub fn fold(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.thread_rank();
        let sum = (0..own).fold(1, |sum: u32, i| { t.sync_threads(); sum * i + 3 }); //~ block
        y[0].store(sum, atomic::Ordering::Relaxed);
    }
    #[kernel]
    pub fn any(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        let _ = (0..9u32).any(|i| { t.sync_threads(); x[i as usize] == own }); //~ block
    }
    #[kernel]
    pub fn while_loop(t: Thread<1>) {
        let mut own = t.thread_rank();
        while own > 1 { t.sync_threads(); own /= 2; } //~ block
    }
    #[kernel]
    pub fn while_let(t: Thread<1>) {
        let mut own = t.thread_rank();
        while let Some(next) = own.checked_sub(5) { t.sync_threads(); own = next; } //~ block
    }
    #[kernel]
    pub fn loop_with_one_exit(t: Thread<1>) {
        let mut own = t.thread_rank();
        loop {
            t.sync_threads(); //~ block
            own >>= 1;
            if own == 0 { break; }
        }
    }
    #[kernel]
    pub fn loop_with_two_exits(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        let mut round = 0;
        loop {
            if round == n { break; }
            t.sync_threads(); //~ block
            if x[round as usize] == own { return; }
            round += 1;
        }
    }
    #[kernel]
    pub fn continue_before_the_barrier(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for i in 0..n {
            if i == own { continue; }
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn break_to_an_outer_loop(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        'outer: for a in 0..n {
            for b in 0..n {
                if x[(a * b) as usize] == own { break 'outer; }
            }
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn continue_of_an_outer_loop(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        'outer: for a in 0..n {
            for b in 0..n {
                if x[(a + b) as usize] == own { continue 'outer; }
            }
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn rounds_counted_by_a_loop(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        let mut steps = 0;
        while x[steps] < own { steps += 1; }
        for _ in 0..steps { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn place_where_a_search_ended(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        let (mut low, mut high) = (0, x.len());
        while low < high {
            let middle = (low + high) / 2;
            if x[middle] < own { low = middle + 1; } else { high = middle; }
        }
        if low > 5 { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn flag_set_in_a_loop(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        let mut is_found = false;
        for i in 0..n { if x[i as usize] == own { is_found = true; } }
        if is_found { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn position_of_an_element(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        let at = x.iter().position(|&v| v == own);
        if at.is_some() { t.sync_threads(); } //~ block
    }
    #[kernel]
    pub fn only_in_the_last_round(t: Thread<1>, x: &[u32]) {
        let own = t.thread_rank();
        let mut left = x[own as usize];
        while left > 0 {
            left -= 1;
            if left == 0 { t.sync_threads(); } //~ block
        }
    }
    #[kernel]
    pub fn nested_loops(t: Thread<1>, n: u32) {
        let own = t.thread_rank();
        for i in 0..n { for _ in i..own { t.sync_threads(); } } //~ block
    }
    #[kernel]
    pub fn behind_a_loop_that_some_return_from(t: Thread<1>, n: u32, x: &[u32]) {
        let own = t.thread_rank();
        for i in 0..n { if x[i as usize] == own { return; } }
        t.sync_threads(); //~ block
    }
    #[kernel]
    pub fn collatz(t: Thread<1>) {
        let mut own = t.thread_rank() + 1;
        while own != 1 {
            own = if own % 2 == 0 { own / 2 } else { 3 * own + 1 };
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn two_flags_that_swap(t: Thread<1>, n: u32) {
        let (mut a, mut b) = (t.thread_rank() > 4, false);
        for _ in 0..n {
            if b { t.sync_threads(); } //~ block
            core::mem::swap(&mut a, &mut b);
        }
    }
    fn down(t: &Thread<1>, n: u32) {
        if n == 0 { return; }
        t.sync_threads(); //~ block
        down(t, n - 1);
    }
    #[kernel]
    pub fn recursion_at_its_end(t: Thread<1>) {
        let own = t.thread_rank();
        down(&t, own % 8);
    }
}
