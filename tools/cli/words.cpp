#include "cli/words.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace ringbolt::tools {

OptionText text_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return {"", "flag", "", "", {}};
  }
  const std::string full = option.get_type_name();
  OptionText text{full, "text", "", "", {}};
  for (const char* kind : {"whole", "real", "one of"}) {
    const std::string mark = fmt::format(":{} ", kind);
    const size_t at = full.find(mark);
    if (at == std::string::npos) {
      continue;
    }
    text.value = full.substr(0, at);
    std::istringstream words(full.substr(at + mark.size()));
    if (std::string_view(kind) == "one of") {
      text.kind = "word";
      for (std::string word; words >> word;) {
        text.words.push_back(word);
      }
    } else {
      text.kind = kind;
      words >> text.least >> text.most;
    }
  }
  // What CLI11 calls a type itself says nothing that the limits don't.
  if (text.value == "UINT" || text.value == "INT" || text.value == "FLOAT") {
    text.value = "N";
  }
  return text;
}

std::string limits_of(const OptionText& text) {
  if (!text.words.empty()) {
    return fmt::format("one of {}", fmt::join(text.words, ", "));
  }
  return text.least.empty() ? "" : fmt::format("{} to {}", text.least, text.most);
}

std::string name_of(const CLI::Option& option) {
  if (option.nonpositional()) {
    return option.get_name();
  }
  const OptionText text = text_of(option);
  return text.value.empty() || text.value == "TEXT" ? option.get_name(true) : text.value;
}

bool is_hidden(const CLI::Option& option) { return option.get_group().empty(); }
bool is_hidden(const CLI::App& app) { return app.get_group().empty(); }

std::vector<const CLI::App*> commands_of(const CLI::App& app, bool with_hidden) {
  return app.get_subcommands([=](const CLI::App* one) { return with_hidden || !is_hidden(*one); });
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> all = commands_of(app, true);
  const auto found = std::ranges::find(all, name, [](const CLI::App* one) { return one->get_name(); });
  return found == all.end() ? nullptr : *found;
}

const CLI::App& chosen_command(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
  }
  return *chosen;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

}  // namespace ringbolt::tools
