use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::broker::ConfigError;

/// TLS with the well-known authorities and those in the PEM file.
///
/// The provider of cryptography is chosen here and not for the process, so that it does not matter
/// what else in the program uses rustls.
pub(super) fn config(more: Option<&Path>) -> Result<Arc<ClientConfig>, ConfigError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(path) = more {
        let unreadable = |why: String| {
            let path = path.display();
            ConfigError::new(format!(
                "the root certificates in {path} can't be read: {why}; name a PEM file of \
                 certificates"
            ))
        };
        let certificates = CertificateDer::pem_file_iter(path);
        let mut known = 0;
        for certificate in certificates.map_err(|error| unreadable(error.to_string()))? {
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            let added = roots.add(certificate);
            added.map_err(|error| unreadable(error.to_string()))?;
            known += 1;
        }
        if known == 0 {
            return Err(unreadable("there is none in it".to_owned()));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError::new(format!("TLS can't be set up: {error}")))?;
    Ok(Arc::new(
        config.with_root_certificates(roots).with_no_client_auth(),
    ))
}
