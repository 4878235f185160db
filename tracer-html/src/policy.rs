//! What a browser may load and run for the page: its own style and script, and nothing else.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// The style of the page.
pub(crate) const STYLE: &str = include_str!("page.css");

/// The script of the page, which only shows numbers under the pointer.
pub(crate) const SCRIPT: &str = include_str!("page.js");

/// Returns the content security policy.
pub(crate) fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither file may contain what ends its element.
    #[test]
    fn style_and_script_are_plain_content_of_their_elements() {
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("</") && !text.contains("<!--"), "{text}");
            assert!(
                !text.contains("http") && !text.contains("url(\"") && !text.contains("@import"),
                "{text}"
            );
        }
    }

    /// `printf '' | openssl dgst -sha256 -binary | base64` gives the hash of nothing, the form that browsers compare.
    #[test]
    fn hashes_have_the_form_that_browsers_compare() {
        let empty = STANDARD.encode(Sha256::digest(""));
        assert_eq!(empty, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert!(policy().starts_with("default-src 'none'; style-src 'sha256-"));
    }
}
