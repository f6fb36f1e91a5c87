#include "cli/formatter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/words.h"
#include "text_wrap.h"

namespace ringbolt::tools {
namespace {

/// The left column: as wide as half of the lines' names.
constexpr size_t kNameColumns = 26;

std::string without_end(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

std::string value_text(const CLI::Option& option, const OptionText& text) {
  return option.get_expected_min() == 0 ? fmt::format("[{}]", text.value) : text.value;
}

std::string left_of(const CLI::Option& option, const OptionText& text, bool is_positional) {
  if (is_positional) {
    return name_of(option);
  }
  return option.get_name(false, true) + (text.value.empty() ? "" : " " + value_text(option, text));
}

/// What it is for, then what it takes, what it is without it, and what it goes with.
std::string right_of(const CLI::Option& option, const OptionText& text) {
  std::vector<std::string> notes;
  // Where the words are told already they need not be told again.
  if (const std::string limits = limits_of(text);
      !limits.empty() &&
      (text.words.empty() || option.get_description().find(text.words.back()) == std::string::npos)) {
    notes.push_back(limits);
  }
  if (!option.get_default_str().empty()) {
    notes.push_back("default: " + option.get_default_str());
  }
  for (const CLI::Option* other : option.get_needs()) {
    notes.push_back("with " + other->get_name());
  }
  for (const CLI::Option* other : option.get_excludes()) {
    notes.push_back("not with " + name_of(*other));
  }
  std::sort(notes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(notes.size(), 2)), notes.end());
  return option.get_description() + (notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, "; ")));
}

}  // namespace

HelpFormatter::HelpFormatter() : width_(terminal_columns()) {
  label("OPTIONS", "OPTIONS");
  label("SUBCOMMAND", "COMMAND ...");
  label("Positionals", "Arguments");
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), width_) + "\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string footer = without_end(app->get_footer());
  return footer.empty() ? "" : wrapped(footer, width_) + "\n";
}

std::string HelpFormatter::row(const std::string& name, const std::string& text) const {
  const bool fits = name.size() + 4 <= kNameColumns;
  const std::string gap =
      fits ? std::string(kNameColumns - name.size() - 2, ' ') : "\n" + std::string(kNameColumns, ' ');
  return "  " + name + (text.empty() ? "" : gap + wrapped(text, width_, kNameColumns)) + "\n";
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return row(sub->get_name(), sub->get_description());
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const OptionText text = text_of(*option);
  return row(left_of(*option, text, is_positional), right_of(*option, text));
}

std::string CommandFormatter::make_usage(const CLI::App* app, std::string name) const {
  return without_end(CLI::Formatter::make_usage(app, std::move(name))) + " -- COMMAND [ARGUMENTS]\n";
}

}  // namespace ringbolt::tools
