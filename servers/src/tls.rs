//! Certificates of an authority that exists for one server alone.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The files of a server that speaks TLS.
#[derive(Debug)]
pub(crate) struct Certificates {
    /// The authority, for clients.
    pub(crate) ca: PathBuf,
    /// The server's certificate, for `localhost` and `127.0.0.1`.
    pub(crate) certificate: PathBuf,
    /// The server's key.
    pub(crate) key: PathBuf,
}

impl Certificates {
    /// Makes an authority, lets it sign a certificate and forgets the authority's key.
    pub(crate) fn make(folder: &Path) -> Result<Self, String> {
        let pems = pems().map_err(|error| format!("its certificate can't be made: {error}"))?;
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            match fs::write(&file, text) {
                Ok(()) => Ok(file),
                Err(error) => Err(format!("cannot write {}: {error}", file.display())),
            }
        };
        let [ca, certificate, key] = pems;
        Ok(Self {
            ca: write("ca.pem", &ca)?,
            certificate: write("certificate.pem", &certificate)?,
            key: write("key.pem", &key)?,
        })
    }
}

/// The authority, the server's certificate and the server's key.
fn pems() -> Result<[String; 3], rcgen::Error> {
    let mut ca = CertificateParams::default();
    ca.distinguished_name = named("A throw-away authority");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_key = KeyPair::generate()?;
    let ca_pem = ca.self_signed(&ca_key)?.pem();

    let mut server = CertificateParams::new(["localhost", "127.0.0.1"].map(String::from))?;
    server.distinguished_name = named("A throw-away server");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &Issuer::new(ca, ca_key))?;
    Ok([ca_pem, certificate.pem(), key.serialize_pem()])
}

fn named(name: &str) -> rcgen::DistinguishedName {
    let mut names = rcgen::DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}
