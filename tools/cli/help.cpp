#include "cli/help.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "base/nearest.h"
#include "cli/completion.h"
#include "cli/formatter.h"
#include "cli/words.h"
#include "command_line.h"
#include "failure.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;

const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    const CLI::App* next = command_named(*found, word);
    if (next == nullptr) {
      std::vector<std::string> names;
      for (const CLI::App* one : commands_of(*found)) {
        names.push_back(one->get_name());
      }
      const std::string near = base::nearest(word, names);
      throw UsageError(fmt::format("\"{}\" is no command{}; `{} --help` lists them", word,
                                   near.empty() ? "" : fmt::format(" (did you mean {}?)", near), path_of(*found)));
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
