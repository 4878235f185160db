//! Tests of traces on disk. They are one program, because linking polars takes long. `cfg(test)` is for clippy, which otherwise
//! takes helpers for code that must not unwrap.

#[cfg(test)]
mod any;
#[cfg(test)]
mod api_calls;
#[cfg(test)]
mod code_objects;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod ended;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod live;
#[cfg(test)]
mod looks;
#[cfg(test)]
mod old;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod support;
#[cfg(test)]
mod throughput;
