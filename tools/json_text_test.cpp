#include "json_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace ringbolt::tools {

/// In a namespace that the macros reach.
struct Told {
  enum class Colour : uint8_t { kRed, kGreen };
  uint64_t large = 0;
  uint32_t small = 0;
  int16_t either = 0;
  double real = 0;
  bool is_so = false;
  Colour colour = Colour::kRed;
  std::optional<uint32_t> perhaps = std::nullopt;
  std::vector<uint16_t> several = {};
  std::array<uint8_t, 2> two{};
  std::string text = {};
  friend bool operator==(const Told&, const Told&) = default;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Told, large, small, either, real, is_so, colour, perhaps, several, two, text)

namespace {

/// A line of Told with one member as `json` says.
std::string line_with(const char* name, const char* json) {
  auto line = nlohmann::json::parse(to_line(Told{}));
  line.at(name) = nlohmann::json::parse(json);
  return line.dump();
}

bool is_taken(const char* name, const char* json) { return from_line<Told>(line_with(name, json)).has_value(); }

TEST(JsonText, comes_back_as_it_was) {
  using Limits = std::numeric_limits<double>;
  for (const double real : {0.0, -0.0, 0.1, 1e300, Limits::min(), Limits::max(), Limits::epsilon(), 12345678.0}) {
    const Told told{UINT64_MAX,           UINT32_MAX, INT16_MIN,  real,     true,
                    Told::Colour::kGreen, 7,          {1, 65535}, {0, 255}, "a\n\"b\" \u00e4"};
    EXPECT_EQ(from_line<Told>(to_line(told)), told) << real;
  }
  EXPECT_EQ(from_line<Told>(to_line(Told{})), Told{});
}

TEST(JsonText, a_number_that_its_member_cannot_hold_makes_nothing_of_all) {
  for (const char* number : {"-1", "1e300", "-1e300", "0.5", "18446744073709551616"}) {
    for (const char* name : {"large", "small", "perhaps"}) {
      EXPECT_FALSE(is_taken(name, number)) << name << " " << number;
    }
  }
  EXPECT_TRUE(is_taken("large", "18446744073709551615"));
  EXPECT_TRUE(is_taken("small", "4294967295"));
  EXPECT_FALSE(is_taken("small", "4294967296"));
  EXPECT_TRUE(is_taken("either", "-32768"));
  EXPECT_FALSE(is_taken("either", "-32769"));
  EXPECT_FALSE(is_taken("either", "32768"));
  EXPECT_FALSE(is_taken("several", "[1, 65536]"));
  EXPECT_FALSE(is_taken("two", "[1, 256]"));
}

TEST(JsonText, a_number_beyond_the_enums_type_is_refused_and_others_are_left_to_who_is_told) {
  EXPECT_TRUE(is_taken("colour", "1"));
  EXPECT_TRUE(is_taken("colour", "200")) << "an enum's values are not known here";
  EXPECT_FALSE(is_taken("colour", "256")) << "this would be the first";
  EXPECT_FALSE(is_taken("colour", "-1"));
}

TEST(JsonText, lacking_and_unknown_members_and_other_types_are_refused) {
  auto line = nlohmann::json::parse(to_line(Told{}));
  line.erase("small");
  EXPECT_FALSE(from_line<Told>(line.dump()));
  line = nlohmann::json::parse(to_line(Told{}));
  line["another"] = 1;
  EXPECT_FALSE(from_line<Told>(line.dump()));
  EXPECT_FALSE(is_taken("two", "[1]"));
  EXPECT_FALSE(is_taken("two", "[1, 2, 3]"));
  EXPECT_FALSE(is_taken("is_so", "1"));
  EXPECT_FALSE(is_taken("text", "1"));
  EXPECT_FALSE(is_taken("small", "null"));
  EXPECT_FALSE(is_taken("small", "\"1\""));
  EXPECT_TRUE(is_taken("perhaps", "null"));
  for (const char* text : {"", "{}", "[]", "null", "1", "\xff"}) {
    EXPECT_FALSE(from_line<Told>(text)) << text;
  }
}

}  // namespace
}  // namespace ringbolt::tools
