#include "cli/words.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/nearest.h"
#include "cli/formatter.h"

namespace ringbolt::tools {
namespace {

std::string joined(std::vector<std::string>::const_iterator begin, std::vector<std::string>::const_iterator end) {
  return fmt::format("{}", fmt::join(begin, end, " "));
}

bool takes_command(const CLI::App& app) {
  return dynamic_cast<const CommandFormatter*>(app.get_formatter().get()) != nullptr;
}

/// The first example of its help.
std::string example_of(const CLI::App& app) {
  const std::string footer = app.get_footer();
  const std::string mark = "\n  ringbolt ";
  const size_t at = footer.find(mark);
  return at == std::string::npos
             ? fmt::format("{} --help says more", path_of(app))
             : fmt::format("for example: {}", footer.substr(at + 3, footer.find('\n', at + 1) - at - 3));
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : commands_of(app)) {
    names.push_back(one->get_name());
  }
  return names;
}

std::string unknown_option(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!is_hidden(*option)) {
      std::ranges::transform(option->get_lnames(), std::back_inserter(known),
                             [](const auto& one) { return "--" + one; });
      std::ranges::transform(option->get_snames(), std::back_inserter(known),
                             [](const auto& one) { return "-" + one; });
    }
  }
  const std::string near = base::nearest(name, known);
  return fmt::format("there is no option {}{}; `{} --help` lists them", name,
                     near.empty() ? "" : fmt::format(" (did you mean {}?)", near), path_of(app));
}

/// Words that nothing has taken.
std::string extra_words(const CLI::App& app, const std::vector<std::string>& extras,
                        const std::vector<std::string>& words, bool has_command) {
  const std::string& first = extras.front();
  if (takes_command(app) && !has_command) {
    const auto at = std::ranges::find(words, first);
    return fmt::format("what to run goes after --: ringbolt {} -- {}", joined(words.begin(), at),
                       joined(at, words.end()));
  }
  if (first.size() > 1 && first.front() == '-') {
    return unknown_option(app, first);
  }
  if (!commands_of(app).empty()) {
    return unknown_command(app, first);
  }
  const std::vector<const CLI::Option*> positionals =
      app.get_options([](const CLI::Option* option) { return option->get_positional() && !is_hidden(*option); });
  std::string taken;
  for (const CLI::Option* option : positionals) {
    taken += (taken.empty() ? "" : " ") + name_of(*option);
  }
  return fmt::format("\"{}\" is one word too many: it takes {}; {}", first,
                     taken.empty() ? "options alone" : taken + " and options", example_of(app));
}

std::string missing_words(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0) {
      const std::string what = option->get_description();
      return fmt::format("{} is missing{}; {}", name_of(*option), what.empty() ? "" : fmt::format(" ({})", what),
                         example_of(app));
    }
  }
  return app.get_parent() == nullptr
             ? fmt::format("a command is missing; `{} --help` lists them", path_of(app))
             : fmt::format("say which: {}; {}", fmt::join(names_of_commands(app), ", "), example_of(app));
}

const CLI::Option* option_named(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::Option*> all = app.get_options();
  const auto found = std::ranges::find(all, name, [](const CLI::Option* one) { return one->get_name(); });
  return found == all.end() ? nullptr : *found;
}

/// Too many values of an option, or too few.
std::string mismatch_words(const CLI::App& app, const std::string& said) {
  const std::string name = said.substr(0, said.find(':'));
  const CLI::Option* option = option_named(app, name);
  if (option == nullptr) {
    return said;
  }
  if (option->count() > 1) {
    return fmt::format("{} is given {} times: once is enough", name, option->count());
  }
  const OptionText text = text_of(*option);
  const std::string limits = limits_of(text);
  return fmt::format("{} takes a value: {}{}", name, text.value, limits.empty() ? "" : fmt::format(" ({})", limits));
}

/// "A excludes B", "A requires B": the two names.
std::pair<std::string, std::string> around(const std::string& said, const std::string& word) {
  const size_t at = said.find(word);
  return at == std::string::npos ? std::pair(said, std::string())
                                 : std::pair(said.substr(0, at), said.substr(at + word.size()));
}

std::string shown(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = option_named(app, name);
  return option == nullptr ? name : name_of(*option);
}

}  // namespace

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

std::string unknown_command(const CLI::App& app, const std::string& word) {
  const std::string near = base::nearest(word, names_of_commands(app));
  return fmt::format("\"{}\" is no command{}; `{} --help` lists them", word,
                     near.empty() ? "" : fmt::format(" (did you mean {}?)", near), path_of(app));
}

std::string usage_words(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                        bool has_command) {
  const CLI::App& chosen = chosen_command(app);
  const std::string said = error.what();
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // A word that is no command is reported as the lack of one; one before the command, as too many.
  if (lacks || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    if (const std::vector<std::string> extras = chosen.remaining(); !extras.empty()) {
      return extra_words(chosen, extras, words, has_command);
    }
    const std::vector<std::string> extras = app.remaining(true);
    return lacks || extras.empty() ? missing_words(chosen) : extra_words(app, extras, words, has_command);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return mismatch_words(chosen, said);
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [one, other] = around(said, " excludes ");
    return fmt::format("{} and {} exclude each other: leave one out", shown(chosen, one), shown(chosen, other));
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const auto [one, other] = around(said, " requires ");
    return fmt::format("{} goes with {} only: give that too, or leave it out", shown(chosen, one),
                       shown(chosen, other));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const auto [name, value] = around(said.substr(said.find(": ") + 2), " = ");
    return fmt::format("{}: \"{}\" can't be read; `{} --help` says what it takes", shown(chosen, name), value,
                       path_of(chosen));
  }
  const auto [name, objection] = around(said, ": ");  // of a validator, whose words are ours
  return objection.empty() ? said : fmt::format("{}: {}", shown(chosen, name), objection);
}

}  // namespace ringbolt::tools
