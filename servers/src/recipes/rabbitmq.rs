//! RabbitMQ, without plugins and with an `epmd` of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{Recipe, Site};
use crate::docker::Image;
use crate::process::Process;
use crate::{command, ports};

pub(super) struct RabbitMq;

impl Recipe for RabbitMq {
    /// The script itself: the one in Debian's PATH changes the user and the folder.
    fn find(&self) -> Result<PathBuf, String> {
        command::required("epmd")?;
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
            .map_or_else(|| command::required("rabbitmq-server"), Ok)
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        // Not in the settings of the first run alone: nobody else takes them while it is down.
        let (epmd, distribution) = (ports::free()?, ports::free()?);
        // Erlang would start a daemon, which nobody ends.
        let mut command = site.command(&command::required("epmd")?, "KILL");
        forget_settings(&mut command);
        command.args(["-address", "127.0.0.1", "-port", &epmd.to_string()]);
        processes.push(site.spawn(command, "epmd")?);
        wait_for(epmd)?;

        let settings = site.write("rabbitmq.conf", &settings(site))?;
        let users = site.write("advanced.config", &users(site))?;
        let plugins = site.write("enabled_plugins", "[].\n")?;
        let mut command = site.command(site.program(), "KILL");
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
            .env("RABBITMQ_DIST_PORT", distribution.to_string())
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins)
            .env("RABBITMQ_CONFIG_FILE", settings)
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", users)
            // Standard output, which goes to our log.
            .env("RABBITMQ_LOGS", "-")
            // The script then becomes the server instead of waiting for it.
            .env("RABBITMQ_ALLOW_INPUT", "1")
            // One scheduler: it has little to do, and others want the processors.
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 1:1 -noinput");
        for (variable, file) in [
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_PID_FILE", "pid"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "generated"),
            // It does not exist, so that the system's is not read instead.
            ("RABBITMQ_CONF_ENV_FILE", "none.conf"),
        ] {
            command.env(variable, site.folder.join(file));
        }
        processes.push(site.spawn(command, "rabbitmq")?);
        Ok(())
    }

    /// It answers a handshake with the method `Connection.Start` on channel 0.
    fn is_ready(&self, site: &Site) -> bool {
        if site.certificates.is_some() {
            return ports::speaks_tls(site.port);
        }
        let answer = ports::ask(site.port, b"AMQP\0\0\x09\x01", |said| said.len() >= 11);
        answer.starts_with(b"\x01\0\0") && answer.get(7..11) == Some(b"\0\x0a\0\x0a")
    }

    fn url(&self, site: &Site) -> String {
        site.address("amqp", "amqps", "guest:guest@") + "/%2f"
    }

    fn image(&self, _site: &Site) -> Image {
        Image {
            name: "rabbitmq:3",
            environment: Vec::new(),
            arguments: &[],
            port: 5672,
        }
    }
}

fn settings(site: &Site) -> String {
    let port = site.port;
    let Some(files) = &site.certificates else {
        return format!("listeners.tcp.1 = 127.0.0.1:{port}\n");
    };
    let mut settings = format!("listeners.tcp = none\nlisteners.ssl.1 = 127.0.0.1:{port}\n");
    for (name, value) in [
        ("cacertfile", files.ca.to_string_lossy()),
        ("certfile", files.certificate.to_string_lossy()),
        ("keyfile", files.key.to_string_lossy()),
        ("verify", "verify_none".into()),
        ("fail_if_no_peer_cert", "false".into()),
    ] {
        settings += &format!("ssl_options.{name} = {value}\n");
    }
    settings
}

/// In Erlang's terms, where a password may hold what it likes.
fn users(site: &Site) -> String {
    let Some((user, password)) = &site.setup.credentials else {
        return "[].\n".to_owned();
    };
    // As numbers: between this file and the check of a password, text is encoded more than once.
    let [user, password] = [user, password].map(|word| {
        let bytes: Vec<String> = word.bytes().map(|byte| byte.to_string()).collect();
        format!("<<{}>>", bytes.join(","))
    });
    format!("[{{rabbit, [{{default_user, {user}}}, {{default_pass, {password}}}]}}].\n")
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
