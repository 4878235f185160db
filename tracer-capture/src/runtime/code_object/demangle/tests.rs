use super::{MAX_NAME, declarations, demangle};

/// Names of kernels in Debian's libraries, and what llvm-cxxfilt 19 prints for them. Lines that begin with `#` name the library.
const NAMES: &str = include_str!("../../../../tests/names/llvm.txt");

fn without_spaces(name: &str) -> String {
    name.split_whitespace().collect()
}

#[test]
fn every_language_by_its_own_rules() {
    for (symbol, name) in [
        ("vector_add", "vector_add"),
        ("f", "f"),
        (
            "_Z10vector_addPKfS0_Pfi",
            "vector_add(float const*, float const*, float*, int)",
        ),
        (
            "_ZN2at6native4copyIfEEvPT_i",
            "void at::native::copy<float>(float*, int)",
        ),
        ("_RNvCs1234_7kernels10vector_add", "kernels::vector_add"),
        ("_ZN7kernels10vector_add17h0123456789abcdefE", "kernels::vector_add"),
        ("_Z", "_Z"),
        ("_Znonsense", "_Znonsense"),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16", "Cijk_Ailk_Bljk_SB_MT64x64x16"),
    ] {
        assert_eq!(demangle(symbol), name);
    }
}

#[test]
fn a_name_does_not_grow_without_end() {
    // Each substitution doubles the text before it.
    let mut symbol = String::from("_Z1f");
    symbol.push_str("SaIiE");
    for at in 0..40 {
        symbol.push_str(&format!("St4pairIS{at:X}_S{at:X}_E"));
    }
    assert!(demangle(&symbol).len() <= MAX_NAME.max(symbol.len()));
}

#[test]
fn names_of_real_libraries_are_as_llvm_prints_them() {
    let pairs: Vec<(&str, &str)> = NAMES.lines().filter_map(|line| line.split_once('\t')).collect();
    assert!(pairs.len() > 250, "{}", pairs.len());
    for (symbol, name) in &pairs {
        assert_eq!(without_spaces(&demangle(symbol)), without_spaces(name), "{symbol}");
    }
    // The sample has what `cpp_demangle` alone cannot read.
    let with = |part: &str| pairs.iter().filter(|(symbol, _)| symbol.contains(part)).count();
    assert!(
        with("Tn") > 30 && with(".intern.") > 5,
        "{} and {}",
        with("Tn"),
        with(".intern.")
    );
}

/// `S1_` is `T_`, as written in the function around the closure. llvm-cxxfilt 19 therefore prints that function's argument, `char`. GNU
/// c++filt prints what tracer prints.
#[test]
fn a_parameter_belongs_to_the_template_that_uses_it() {
    let symbol = "_Z6kernelIZ5outerIcfEvT_T0_EUliE_dEvS1_S2_";
    assert_eq!(
        demangle(symbol),
        "void kernel<void outer<char, float>(char, float)::'lambda'(int), double>(void outer<char, float>(char, float)::'lambda'(int), double)"
    );
}

#[test]
fn a_suffix_of_the_compiler_is_no_part_of_the_name() {
    for (symbol, name) in [
        (
            "_ZL4fillPfi.intern.562af8b164d24be4",
            "fill(float*, int) (.intern.562af8b164d24be4)",
        ),
        ("_Z4fillIfEvPT_.llvm.123", "void fill<float>(float*) (.llvm.123)"),
        ("_Z4fill!.intern.1", "_Z4fill!.intern.1"),
        ("fill.intern.1", "fill.intern.1"),
    ] {
        assert_eq!(demangle(symbol), name);
    }
}

/// The type of a declaration is not printed, and later substitutions count it.
#[test]
fn declarations_are_not_printed() {
    for (symbol, name) in [
        ("_Z1fIiTnbLb0EEvT_", "void f<int, false>(int)"),
        ("_Z1fITyiEvT_", "void f<int>(int)"),
        ("_Z1fITpTnPiLS0_0EEvT_", "void f<(int*)0>((int*)0)"),
        // S3_ is a part of the declared type only.
        (
            "_Z1fIiTnNSt9enable_ifIXsr3std7is_sameIT_St4pairIicEEE5valueEiE4typeELi0EEvS3_",
            "void f<int, 0>(std::pair<int, char>)",
        ),
        // A declaration within the type of another one.
        ("_Z1fITnN1AIiTnjLj3EE1tELi1EEvi", "void f<1>(int)"),
    ] {
        assert_eq!(demangle(symbol), name, "{symbol}");
    }
    // Marks of a hostile name.
    assert_eq!(declarations::cut("a$.declared, b"), "a");
    assert_eq!(declarations::cut("$.argument, b$.c"), "b$.c");
}

#[test]
fn what_is_not_understood_stays_mangled() {
    let deep = format!("_Z1fI{}iE{}", "TnP".repeat(200), "Li0E".repeat(200));
    for symbol in [
        "_Z1fITkSt8integraliEvT_",
        "_Z1fITniLi0E",
        "_Z1fITn99xLi0EEvv",
        "_Z1fITnEEvv",
        &deep,
    ] {
        assert_eq!(demangle(symbol), symbol);
    }
}

#[test]
fn the_style_is_llvms() {
    for (symbol, name) in [
        (
            "_Z1fILj4ELm5ELl6ELy7ELx8ELin9EEvv",
            "void f<4u, 5ul, 6l, 7ull, 8ll, -9>()",
        ),
        ("_Z1fILs4ELb1EEvv", "void f<(short)4, true>()"),
        ("_Z1fDv4_f", "f(float vector[4])"),
        ("_Z1fIJEiEvv", "void f<int>()"),
        ("_Z1fIiJEEvv", "void f<int>()"),
        (
            "_Z1fIZ1gvEUliE0_EvT_",
            "void f<g()::'lambda0'(int)>(g()::'lambda0'(int))",
        ),
        (
            "_Z1fIiENSt9enable_ifIXntsr3std7is_voidIT_EE5valueEvE4typeEv",
            "std::enable_if<!std::is_void<int>::value, void>::type f<int>()",
        ),
    ] {
        assert_eq!(without_spaces(&demangle(symbol)), without_spaces(name), "{symbol}");
    }
}

/// Cut names, and names with another letter in the middle: the result may be anything.
#[test]
fn damaged_names_do_no_harm() {
    for symbol in NAMES.lines().filter_map(|line| line.split('\t').next()).step_by(5) {
        for at in (0..symbol.len()).step_by(3) {
            let _ = (demangle(&symbol[..at]), declarations::hide(&symbol[..at]));
            for letter in ["T", "n", "E", "I", "_", "9", "D", "L"] {
                let damaged = format!("{}{letter}{}", &symbol[..at], &symbol[at + 1..]);
                let _ = declarations::hide(&damaged);
            }
        }
    }
}
