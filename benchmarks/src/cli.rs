use std::path::PathBuf;

use clap::Parser;

/// Measures outbox-runtime beside hand-written code and its peers; `cargo xtask bench` runs it.
#[derive(Debug, Parser)]
#[command(name = "outbox-bench")]
pub(crate) struct Cli {
    /// Where PostgreSQL is. Databases named outbox_bench_... are made anew there
    #[arg(
        long,
        value_name = "URL",
        default_value = "postgres://postgres@127.0.0.1:5432/postgres"
    )]
    pub(crate) postgres: String,

    /// The program `outbox-bench-peers`; without it the peers are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: Option<PathBuf>,

    /// The workspace, for the section that measures the compiler
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) workspace: PathBuf,

    /// Only these sections; may be repeated
    #[arg(long, value_name = "SECTION")]
    pub(crate) only: Vec<String>,

    /// How many rounds each pair is measured, after one that warms up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: Option<u16>,

    /// Smaller tables and shorter rounds: a first look, in less than five minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print a line of JSON for each pair instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw the ratios and the curves as an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// List the sections
    #[arg(long)]
    pub(crate) list: bool,
}
