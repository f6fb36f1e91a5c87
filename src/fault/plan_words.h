#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fault/rule.h"
#include "fault/words.h"

/// The words for kinds of faults and for how strong one is.
namespace ringbolt::fault {

/// All functions here are pure and thread-safe.
std::optional<Kind> kind_of(std::string_view word);
std::string_view name_of(Kind kind);
/// All of them, separated by commas.
std::string kind_names();

/// Reads what belongs to `key` if the rule's kind knows it. False: `key` is none of its words. Takes the key's value
/// from `words`, and complains there of a bad one; the rule then holds some value in range.
bool read_strength(Words& words, std::string_view key, Rule& rule);
/// " key value" for what is not as usual.
std::string strength_text(const Rule& rule);
/// What a kind can't do without. Empty: all is there.
std::string missing_part(const Rule& rule);

}  // namespace ringbolt::fault
