#[ferrogrid::module(arch = ["sm_75", "sm_70"])]
mod too_old {}

#[ferrogrid::module(arch = ["sm_777"])]
mod unknown {}

#[ferrogrid::module(arch = "sm_75")]
mod no_list {}

fn main() {}
