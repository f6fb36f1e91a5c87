// docs/profiles.md is where the messages send people: it knows every rule and every knob.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "profile/catalogue.h"
#include "profile/knobs.h"
#include "profile/rules.h"

namespace ringbolt::profiles {
namespace {

std::string profiles_page() {
  std::ifstream file(RINGBOLT_PROFILES_PAGE);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Page, tells_of_every_rule) {
  const std::string page = profiles_page();
  const std::string meanings = page.substr(page.find("## What the messages mean"));
  for (size_t i = 0; i < static_cast<size_t>(profile::Rule::count_); ++i) {
    const std::string name = profile::text_of(static_cast<profile::Rule>(i)).name;
    EXPECT_NE(meanings.find(name), std::string::npos) << name;
  }
}

TEST(Page, tells_of_every_profile_and_knob) {
  const std::string page = profiles_page();
  for (const profile::NamedProfile& known : profile::known_profiles()) {
    EXPECT_NE(page.find(std::string("| `") + known.name + "` |"), std::string::npos) << known.name;
  }
  for (const profile::KnobText& knob : profile::known_knobs()) {
    EXPECT_NE(page.find(std::string("| `") + knob.name + "` |"), std::string::npos) << knob.name;
  }
}

}  // namespace
}  // namespace ringbolt::profiles
