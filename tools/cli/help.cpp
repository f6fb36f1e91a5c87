#include "cli/help.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "cable_choice.h"
#include "cli/formatter.h"
#include "cli/words.h"
#include "cluster/cabling.h"
#include "cluster_state.h"
#include "command_line.h"
#include "failure.h"

namespace ringbolt::tools {
namespace {

/// A command line up to the word that is being typed.
struct Typed {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  ///< whose value is being typed
  size_t n_arguments = 0;               ///< that stand before it
  std::string cluster;
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

const CLI::Option* visible_option(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::Option*> all =
      app.get_options([&](const CLI::Option* one) { return !is_hidden(*one) && one->check_name(name); });
  return all.empty() ? nullptr : all.front();
}

bool names_cluster(const CLI::Option& option) { return option.check_name("--cluster"); }

Typed read(const CLI::App& app, const std::vector<std::string>& words) {
  Typed typed{&app, nullptr, 0, ""};
  for (auto word = words.begin(); word != words.end() - 1; ++word) {
    if (*word == "=") {  // bash makes it a word of its own
      continue;
    }
    if (typed.option != nullptr) {
      typed.cluster = names_cluster(*typed.option) ? *word : typed.cluster;
      typed.option = nullptr;
    } else if (word->starts_with('-')) {
      const CLI::Option* option = visible_option(*typed.command, *word);
      typed.option = option != nullptr && takes_value(*option) ? option : nullptr;
    } else if (const CLI::App* next = command_named(*typed.command, *word); next != nullptr) {
      typed = {next, nullptr, 0, typed.cluster};
    } else {
      ++typed.n_arguments;
    }
  }
  return typed;
}

std::vector<std::string> names_of_nodes(const std::string& cluster) {
  std::vector<std::string> names;
  for (const cluster::Node& node : open_cluster(cluster).model.nodes) {
    names.push_back(node.name);
  }
  return names;
}

std::vector<std::string> names_of_cables(const std::string& cluster) {
  const LiveCluster live = open_cluster(cluster);
  std::vector<std::string> names;
  for (const cluster::Cable& cable : live.model.cables) {
    // Nodes alone where they mean one cable: ports have colons, at which shells divide words.
    const bool is_alone = cluster::cables_between(live.model, cable.a.node, cable.b.node).size() == 1;
    names.push_back(is_alone
                        ? fmt::format("{}-{}", live.model.nodes[cable.a.node].name, live.model.nodes[cable.b.node].name)
                        : cable_text(live, static_cast<uint32_t>(&cable - live.model.cables.data())));
  }
  return names;
}

/// After the last comma of what was typed; all before it stays.
std::vector<std::string> in_list(std::vector<std::string> names, const std::string& typed) {
  const size_t comma = typed.rfind(',');
  for (std::string& name : names) {
    name.insert(0, comma == std::string::npos ? "" : typed.substr(0, comma + 1));
  }
  return names;
}

std::vector<std::string> values_of(const CLI::Option& option, const Typed& typed, const std::string& begun) {
  const OptionText text = text_of(option);
  if (!text.words.empty()) {
    return text.words;
  }
  if (names_cluster(option)) {
    return cluster_names(cluster::RuntimeDir::from_environment());
  }
  if (text.value == "NODE" || text.value.starts_with("NODE[") || text.value.starts_with("K[") || text.value == "A,B") {
    return in_list(names_of_nodes(typed.cluster), begun);
  }
  if (text.value.starts_with("A-B")) {
    return names_of_cables(typed.cluster);
  }
  if (text.value == "PROFILE") {
    return {"tn3205", "apple", "usb4-linux", "spark"};
  }
  if (text.value == "LIB" || text.value == "LIBRARY") {
    return text.value == "LIB" ? std::vector<std::string>{"auto", "system", "soft"}
                               : std::vector<std::string>{"system", "ours"};
  }
  return {};
}

std::vector<std::string> candidates(const Typed& typed, const std::string& begun) {
  if (typed.option != nullptr) {
    return values_of(*typed.option, typed, begun);
  }
  if (begun.starts_with('-')) {
    std::vector<std::string> names;
    for (const CLI::Option* option : typed.command->get_options()) {
      if (!is_hidden(*option)) {
        for (const std::string& name : option->get_lnames()) {
          names.push_back("--" + name);
        }
      }
    }
    return names;
  }
  std::vector<std::string> names;
  for (const CLI::App* one : commands_of(*typed.command)) {
    names.push_back(one->get_name() + "\t" + one->get_description());
  }
  const std::vector<const CLI::Option*> arguments = typed.command->get_options(
      [](const CLI::Option* option) { return option->get_positional() && !is_hidden(*option); });
  if (typed.n_arguments < arguments.size()) {
    std::ranges::copy(values_of(*arguments[typed.n_arguments], typed, begun), std::back_inserter(names));
  }
  return names;
}

/// `help` takes the names of commands.
Typed without_help(const CLI::App& app, const std::vector<std::string>& words) {
  const bool is_help = words.size() > 1 && words.front() == "help";
  return is_help ? read(app, {words.begin() + 1, words.end()}) : read(app, words);
}

/// Prints what the last of `words` may become, a word a line, commands with a tab and what they do: the shells' files
/// in completion/ ask so. `words` follow "ringbolt"; the last is what was typed so far, perhaps nothing. Nothing is
/// printed where a file may stand.
int complete(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& begun = words.back();
  try {
    for (const std::string& one : candidates(without_help(app, words), begun)) {
      if (one.starts_with(begun)) {
        fmt::print("{}\n", one);
      }
    }
  } catch (const std::exception&) {
    // No cluster is up, or none can be read: a shell that completes is no place to say so.
  }
  return kOk;
}

using Json = nlohmann::ordered_json;

const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    const CLI::App* next = command_named(*found, word);
    if (next == nullptr) {
      throw UsageError(unknown_command(*found, word));
    }
    found = next;
  }
  return *found;
}

Json as_json(const CLI::Option& option) {
  const OptionText text = text_of(option);
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  Json json{{"names", names},
            {"is_argument", option.get_positional()},
            {"kind", text.kind},
            {"value", option.nonpositional() ? text.value : name_of(option)},
            {"description", option.get_description()},
            {"is_required", option.get_required()},
            {"is_hidden", is_hidden(option)}};
  if (!text.least.empty()) {
    json["least"] = text.least;
    json["most"] = text.most;
  }
  if (!text.words.empty()) {
    json["words"] = text.words;
  }
  return json;
}

void add_commands(const CLI::App& app, Json& commands) {
  for (const CLI::App* one : commands_of(app, true)) {
    Json options = Json::array();
    for (const CLI::Option* option : one->get_options()) {
      options.push_back(as_json(*option));
    }
    const std::string path = path_of(*one);
    commands.push_back({{"command", path.substr(path.find(' ') + 1)},
                        {"group", one->get_group()},
                        {"description", one->get_description()},
                        {"is_hidden", is_hidden(*one) || is_hidden(app)},
                        {"has_commands", !commands_of(*one).empty()},
                        {"options", std::move(options)}});
    add_commands(*one, commands);
  }
}

int help(const CLI::App& app, const HelpOptions& options) {
  if (options.is_json) {
    Json root{{"commands", Json::array()}};
    add_commands(app, root["commands"]);
    fmt::print("{}\n", root.dump(2));
    return kOk;
  }
  const CLI::App& command = command_of(app, options.command);
  // App::help() would speak of the command that was chosen, which is this one.
  fmt::print("{}", command.get_formatter()->make_help(&command, path_of(command), CLI::AppFormatMode::Normal));
  return kOk;
}

}  // namespace

void define_help(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("help", "Say more about a command");
  command->add_option("command", request.help.command, "The command (default: all of them, in a line each)")
      ->type_name("COMMAND");
  command->add_flag("--json", request.help.is_json, "Print all commands and their options as JSON");
  command->footer("Examples:\n  ringbolt help run\n  ringbolt help fault add\n");
  command->callback([&] { request.action = [&] { return help(app, request.help); }; });

  CLI::App* complete_command = app.add_subcommand("complete", "")->group("");
  complete_command->callback([&] {
    request.takes_command = true;
    request.action = [&] { return complete(app, request.run.command); };
  });
}

void group_commands(CLI::App& app) {
  const struct {
    const char* name;
    std::vector<const char*> commands;
  } groups[] = {
      {"Plan and make clusters", {"plan", "up", "down", "status", "devices", "hostfile", "doctor", "agent"}},
      {"Run programs on nodes", {"run", "exec", "env", "bridge"}},
      {"Measure and prove", {"matrix", "perf", "bench", "check", "verify", "nccl"}},
      {"Watch", {"map", "metrics", "decode", "trace"}},
      {"Break and mend on purpose", {"cut", "heal", "fault", "reboot"}},
      {"Help", {"help"}},
  };
  for (const auto& group : groups) {
    for (const char* command : group.commands) {
      app.get_subcommand(command)->group(group.name);
    }
  }
  for (const CLI::App* command : commands_of(app)) {
    RINGBOLT_ASSERT(command->get_group() != "Subcommands");
  }
}

}  // namespace ringbolt::tools
