#[ferrogrid::module(arch = ["sm_75", "sm_70"])]
mod too_old {}

#[ferrogrid::module(arch = "sm_75")]
mod no_list {}

#[ferrogrid::module(host_only, arch = ["sm_75"])]
mod on_the_host {}

fn main() {}
