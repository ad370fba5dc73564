use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::arena::{NotExercised, open_to_all};

/// How long a server may take to be ready or to be gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// A PostgreSQL server of one run's own, so that no other test notices what happens to it.
pub struct Cluster {
    server: Option<Child>,
    binaries: PathBuf,
    folder: tempfile::TempDir,
    owner: Option<(u32, u32)>,
    port: u16,
    environment: Vec<(String, String)>,
}

impl Cluster {
    /// Makes a server and starts it, with this in its environment.
    ///
    /// # Errors
    /// [`NotExercised`] if this machine has no server to start or no user to run it as.
    pub fn start(environment: Vec<(String, String)>) -> Result<Self, NotExercised> {
        let binaries = binaries().ok_or_else(|| {
            NotExercised(
                "no binaries of PostgreSQL are installed to start a server of its own".into(),
            )
        })?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        open_to_all(folder.path());
        let mut cluster = Self {
            server: None,
            binaries,
            folder,
            owner: owner()?,
            port: free_port(),
            environment,
        };
        if let Some((uid, gid)) = cluster.owner {
            chown(cluster.folder.path(), Some(uid), Some(gid)).expect("we are root");
        }
        let made = cluster
            .command("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
            .args(["--no-locale", "--no-sync", "--pgdata"])
            .arg(cluster.data())
            .output()
            .expect("initdb starts");
        let told = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {told}");
        cluster.run();
        Ok(cluster)
    }

    /// Where it is, also while it is down.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends it as a power cut would: no session is told, nothing is written (`immediate`).
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = kill_process(Pid::from_child(&server), Signal::QUIT);
            let since = Instant::now();
            while matches!(server.try_wait(), Ok(None)) && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Starts it and waits until it is ready.
    pub fn run(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .expect("the log opens");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.arg("-p").arg(self.port.to_string());
        command
            .args(["-clisten_addresses=127.0.0.1", "-cunix_socket_directories="])
            // Our processes are killed, not the machine.
            .args(["-cfsync=off", "-cfull_page_writes=off"])
            .args(["-cmax_connections=150"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log opens twice"))
            .stderr(log)
            .process_group(0);
        let status = self.data().join("postmaster.pid");
        let _ = fs::remove_file(&status);
        self.server = Some(command.spawn().expect("postgres starts"));
        let since = Instant::now();
        // The eighth line of the file is the server's state.
        let is_ready = || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            text.lines()
                .nth(7)
                .is_some_and(|state| state.trim() == "ready")
        };
        while !is_ready() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(since.elapsed() < PATIENCE, "the server is not ready: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        // Where there is `setpriv`, the server does not outlive us even if we are killed.
        let program = self.binaries.join(program);
        let mut command = if Path::new("/usr/bin/setpriv").is_file() {
            let mut command = Command::new("/usr/bin/setpriv");
            command.arg("--pdeathsig=QUIT").arg("--").arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some((uid, gid)) = self.owner {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The folder with the server's programs: in `PATH`, or the newest of Debian's.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).collect::<Vec<_>>();
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut debian: Vec<_> = debian
        .filter_map(|version| {
            let number: u32 = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .collect();
    debian.sort();
    let debian = debian.into_iter().rev().map(|(_, folder)| folder);
    in_path.into_iter().chain(debian).find(|folder| {
        ["postgres", "initdb"]
            .iter()
            .all(|program| folder.join(program).is_file())
    })
}

/// Whom the server runs as, if not as ourselves: it refuses to run as root.
fn owner() -> Result<Option<(u32, u32)>, NotExercised> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let id = |flag: &str| {
        let output = Command::new("id").args([flag, "postgres"]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    match (id("-u"), id("-g")) {
        (Some(uid), Some(gid)) => Ok(Some((uid, gid))),
        _ => Err(NotExercised(
            "PostgreSQL does not run as root, and there is no user `postgres` to run it as".into(),
        )),
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound socket").port()
}
