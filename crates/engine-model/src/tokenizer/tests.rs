//! What the tokenizer promises: whole text, stable beginnings, realistic lengths.

use proptest::prelude::*;

use super::*;

const PROSE: &str = "An isotherm is a line that joins places of equal temperature. Mapmakers first drew such lines early in \
the nineteenth century, when a traveller who had measured the air on three continents wanted to show, at a glance, how \
warmth is spread over the globe. The lines bend north where currents carry warm water along a coast, and south where \
mountains or cold seas stand in the way. Before that, people believed that climate depended mostly on latitude; the map \
made it obvious that it does not. Today the same idea helps with very different questions: which machine in a large \
building runs hot, which part of a memory is worth keeping, and where a request should go so that the work done for an \
earlier one does not have to be repeated. \"Keep warm what is used,\" as an engineer put it, \"and let the rest cool \
down.\" It isn't complicated, but it's surprisingly effective in practice, particularly when 80 % of all conversations \
begin with the same instructions, documents or examples.";

const CHINESE: &str = "等温线是地图上连接温度相同地点的曲线。十九世纪初，一位旅行家在三个大陆测量了空气的温度，他希望人们一眼就能看出热量在地球上\
的分布。暖流经过海岸的地方，等温线向北弯曲；高山和寒冷的海洋使它向南移动。今天，同样的想法也用于完全不同的问题：哪台机器过热，哪部分内存值得保留，\
请求应该发送到哪里，才能避免重复已经完成的工作。";

const JSON: &str = r#"{"type":"function","function":{"name":"get_temperature","description":"Current air temperature","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","kelvin"]}},"required":["city"]}}}"#;

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    tokenize(text, &mut tokens);
    tokens
}

fn characters_per_piece(text: &str) -> f64 {
    text.chars().count() as f64 / count(text) as f64
}

#[test]
fn english_prose_has_4_2_characters_a_piece() {
    let mean = characters_per_piece(PROSE);
    assert!((4.1..4.3).contains(&mean), "{mean}");
}

#[test]
fn chinese_has_1_5_characters_a_piece() {
    let mean = characters_per_piece(CHINESE);
    assert!((1.4..1.6).contains(&mean), "{mean}");
}

#[test]
fn json_is_cut_finer_than_prose() {
    let mean = characters_per_piece(JSON);
    assert!((3.3..3.7).contains(&mean), "{mean}");
}

#[test]
fn pieces_are_uneven() {
    let mut lengths: Vec<usize> = pieces(PROSE).map(|piece| piece.text.chars().count()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() >= 8, "{lengths:?}");
}

#[test]
fn a_word_takes_the_space_before_it_and_indentation_stays_whole() {
    let texts: Vec<&str> = pieces("a 12345\n        b  c").map(|piece| piece.text).collect();
    assert_eq!(texts, ["a", " ", "123", "45", "\n       ", " b", " ", " c"]);
}

#[test]
fn no_space_at_all_does_not_make_one_long_piece() {
    for text in ["a".repeat(5_000), "-".repeat(5_000), " ".repeat(5_000), "7".repeat(5_000), "线".repeat(5_000)] {
        assert!(pieces(&text).all(|piece| piece.text.chars().count() <= 16));
    }
}

#[test]
fn equal_pieces_have_equal_tokens_and_different_pieces_different_ones() {
    let mut known = std::collections::HashMap::new();
    for piece in [PROSE, CHINESE, JSON].into_iter().flat_map(pieces) {
        assert_eq!(*known.entry(piece.text).or_insert(piece.token), piece.token);
    }
    let mut tokens: Vec<Token> = known.values().copied().collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), known.len());
}

/// Texts in which words, spaces, digits, marks and scripts meet in all ways.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-dA-D 0-3\n.,\"{}:线温é🌡-]{0,80}", any::<String>()]
}

proptest! {
    #[test]
    fn pieces_joined_are_the_text(text in any_text()) {
        prop_assert!(pieces(&text).all(|piece| !piece.text.is_empty()));
        prop_assert_eq!(pieces(&text).map(|piece| piece.text).collect::<String>(), text);
    }

    #[test]
    fn a_text_cut_where_a_piece_ends_has_the_pieces_up_to_there(text in any_text(), cut in any::<prop::sample::Index>()) {
        let whole: Vec<Piece<'_>> = pieces(&text).collect();
        let kept = cut.index(whole.len() + 1);
        let beginning: String = whole[..kept].iter().map(|piece| piece.text).collect();
        prop_assert_eq!(pieces(&beginning).collect::<Vec<_>>(), &whole[..kept]);
    }

    #[test]
    fn texts_that_begin_alike_have_tokens_that_begin_alike(
        shared in any_text(),
        left in any_text(),
        right in any_text(),
    ) {
        let left = format!("{shared}{left}");
        let alike = tokens(&left).iter().zip(&tokens(&format!("{shared}{right}"))).take_while(|(a, b)| a == b).count();
        // A piece's end depends on up to two characters behind it.
        let decided = shared.chars().count().saturating_sub(2);
        let mut end = 0;
        let safe = pieces(&left).take_while(|piece| {
            end += piece.text.chars().count();
            end <= decided
        });
        prop_assert!(alike >= safe.count());
    }
}
