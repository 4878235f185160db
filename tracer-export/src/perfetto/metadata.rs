//! What a reader must know of the trace.

use std::io::{self, Write};

use super::intern::Kind;
use super::proto::{
    debug_annotation as annotation, trace_attributes as attributes, trace_packet as packet, track_event as event,
};
use super::wire::Message;
use super::{Line, Perfetto};
use crate::About;
use crate::timeline::{Canvas, Track};

impl<W: Write> Perfetto<W> {
    /// Writes the metadata as attributes of the trace, and as an instant, because viewers before 2026 do not show attributes.
    pub(super) fn metadata(&mut self, about: &About, damage: &[String]) -> io::Result<()> {
        let texts = about.texts(damage);
        let mut message = Message::default();
        message.message(packet::TRACE_ATTRIBUTES, |of| {
            for (key, value) in &texts {
                of.message(attributes::ATTRIBUTE, |of| {
                    of.text(attributes::KEY, &format!("tracer.{key}"))
                        .text(attributes::STRING_VALUE, value);
                });
            }
        });
        self.write(message)?;
        let line = Line::Track(Track::Trace);
        if !self.tracks.contains_key(&line) {
            self.track(Track::Trace, &about.named("tracer: the recording"))?;
        }
        let track = self.id(line);
        let category = self.interned.number(Kind::Category, "about");
        let name = self.interned.number(Kind::Event, "about this trace");
        let named: Vec<_> = texts
            .iter()
            .map(|(key, value)| (self.interned.number(Kind::Argument, key), value))
            .collect();
        self.event(self.begin_ns, event::INSTANT, track, |body| {
            body.uint(event::CATEGORY_IIDS, category).uint(event::NAME_IID, name);
            for (key, value) in named {
                body.message(event::DEBUG_ANNOTATIONS, |of| {
                    of.uint(annotation::NAME_IID, key).text(annotation::STRING_VALUE, value);
                });
            }
        })
    }
}
