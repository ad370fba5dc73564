//! The command line.

use clap::{Args, Parser, Subcommand};

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Runs all tests against throw-away servers, then checks the book
    Test(TestOptions),
    /// Runs what continuous integration runs: formatting, lints, docs, licences, features, all tests
    Ci,
    /// Checks the architecture rules: layers, pure domain, SQL in its place, file length
    Tidy,
    /// Builds the book and checks its listings and links
    Book,
    /// Starts the throw-away servers and runs a command beside them, or waits for Ctrl-C
    Servers(ServersOptions),
}

#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Fail when a server or tool is missing instead of listing it as not exercised
    #[arg(long)]
    pub(crate) require_all: bool,

    /// Never install a missing server or tool
    #[arg(long)]
    pub(crate) no_install: bool,

    /// Run only the tests whose name contains one of these (and leave out tidy and the book)
    pub(crate) filter: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServersOptions {
    /// Never install a missing server
    #[arg(long)]
    pub(crate) no_install: bool,

    /// The command to run, with the servers' addresses in its environment
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}
