//! RabbitMQ, without plugins and with an `epmd` of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{Recipe, Site};
use crate::process::Process;
use crate::{Setup, find, ports};

pub(super) struct RabbitMq;

impl Recipe for RabbitMq {
    /// The script itself: the one in Debian's PATH changes the user and the folder.
    fn find(&self) -> Result<PathBuf, String> {
        find::required("epmd")?;
        let releases = fs::read_dir("/usr/lib/rabbitmq/lib")
            .into_iter()
            .flatten()
            .flatten();
        let mut releases: Vec<PathBuf> = releases
            .map(|release| release.path().join("sbin/rabbitmq-server"))
            .filter(|script| script.is_file())
            .collect();
        releases.sort();
        releases
            .pop()
            .map_or_else(|| find::required("rabbitmq-server"), Ok)
    }

    fn refuses(&self, _setup: &Setup) -> Option<&'static str> {
        None
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        // Not in the settings of the first run alone: nobody else takes them while it is down.
        let (epmd, distribution) = (ports::free()?, ports::free()?);
        // Erlang would start a daemon, which nobody ends.
        let mut command = site.command(&find::required("epmd")?, "KILL");
        forget_settings(&mut command);
        command.args(["-address", "127.0.0.1", "-port", &epmd.to_string()]);
        processes.push(site.spawn(command, "epmd")?);
        wait_for(epmd)?;

        let settings = site.write(
            "rabbitmq.conf",
            &format!("listeners.tcp.1 = 127.0.0.1:{}\n", site.port),
        )?;
        let plugins = site.write("enabled_plugins", "[].\n")?;
        let mut command = site.command(&site.program, "KILL");
        forget_settings(&mut command);
        command
            .env("HOME", &site.folder)
            .env("ERL_EPMD_PORT", epmd.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env(
                "ERL_FLAGS",
                "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
            )
            .env("RABBITMQ_NODENAME", "outbox@localhost")
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", site.port.to_string())
            .env("RABBITMQ_DIST_PORT", distribution.to_string())
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins)
            .env("RABBITMQ_CONFIG_FILE", settings)
            // Standard output, which goes to our log.
            .env("RABBITMQ_LOGS", "-")
            // The script then becomes the server instead of waiting for it.
            .env("RABBITMQ_ALLOW_INPUT", "1")
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 2:2 -noinput");
        for (variable, file) in [
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_PID_FILE", "pid"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "generated"),
            // These two do not exist, so that none of the system's is read instead.
            ("RABBITMQ_CONF_ENV_FILE", "none.conf"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "none.config"),
        ] {
            command.env(variable, site.folder.join(file));
        }
        processes.push(site.spawn(command, "rabbitmq")?);
        Ok(())
    }

    /// It answers a handshake with the method `Connection.Start` on channel 0.
    fn is_ready(&self, site: &Site, _server: &Process) -> bool {
        let answer = ports::ask(site.port, b"AMQP\0\0\x09\x01", |said| said.len() >= 11);
        answer.starts_with(b"\x01\0\0") && answer.get(7..11) == Some(b"\0\x0a\0\x0a")
    }

    fn url(&self, site: &Site) -> String {
        let user = site.user_part("guest:guest@");
        format!("amqp://{user}127.0.0.1:{}/%2f", site.port)
    }
}

/// Settings of another RabbitMQ, or of another Erlang, that our own environment may hold.
fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("RABBITMQ_") || text.starts_with("ERL_") {
            command.env_remove(&name);
        }
    }
}

fn wait_for(port: u16) -> Result<(), String> {
    let since = Instant::now();
    while !ports::is_open(port) {
        if since.elapsed() > Duration::from_secs(10) {
            return Err("epmd does not listen".to_owned());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
