//! Redis with an append-only file.

use std::path::PathBuf;

use super::{Recipe, Site};
use crate::process::Process;
use crate::{Setup, find, ports};

pub(super) struct Redis;

impl Recipe for Redis {
    fn find(&self) -> Result<PathBuf, String> {
        find::required("redis-server")
    }

    fn refuses(&self, _setup: &Setup) -> Option<&'static str> {
        None
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        let settings = format!(
            "bind 127.0.0.1\n\
             port {}\n\
             daemonize no\n\
             save \"\"\n\
             appendonly yes\n\
             appendfsync always\n",
            site.port
        );
        let file = site.write("redis.conf", &settings)?;
        let mut command = site.command(&site.program, "KILL");
        command.arg(file).arg("--dir").arg(&site.folder);
        processes.push(site.spawn(command, "redis")?);
        Ok(())
    }

    /// It accepts connections before it has read its file, and says `-LOADING` meanwhile.
    fn is_ready(&self, site: &Site, _server: &Process) -> bool {
        let answer = ports::ask(site.port, b"PING\r\n", |said| said.contains(&b'\n'));
        answer.starts_with(b"+PONG")
    }

    fn url(&self, site: &Site) -> String {
        format!("redis://{}127.0.0.1:{}", site.user_part(""), site.port)
    }
}
