use std::path::PathBuf;

use clap::{Parser, Subcommand};

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

    /// How many rounds each pair is measured, after one that warms up; peers have one with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: Option<u16>,

    /// Smaller tables, fewer and shorter rounds, and no compiler: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print a line of JSON for each pair instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw the ratios and the curves as an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Measure nothing; tell and draw the lines that earlier runs told as JSON. May be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "quick", "rounds", "list", "tiny"])]
    pub(crate) lines: Vec<PathBuf>,

    /// List the sections
    #[arg(long)]
    pub(crate) list: bool,

    /// Next to nothing of each section, whose figures say nothing: for the tests
    #[arg(long, hide = true, conflicts_with = "quick")]
    pub(crate) tiny: bool,

    /// What the names of the databases begin with
    #[arg(long, value_name = "NAME", default_value = "outbox_bench", hide = true)]
    pub(crate) prefix: String,

    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What a process does that a section starts beside its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Relays from a database until standard input ends, then tells what it published
    #[command(hide = true)]
    Relay(RelayRole),
}

/// A relay in a process of its own.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RelayRole {
    /// The database's name
    #[arg(long)]
    pub(crate) database: String,

    /// How long the broker takes for a call
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) broker_millis: u64,

    /// How long a lease lasts
    #[arg(long, value_name = "MS", default_value_t = 15_000)]
    pub(crate) lease_millis: u64,

    /// The sequence of each aggregate's first event
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first_sequence: i64,
}
