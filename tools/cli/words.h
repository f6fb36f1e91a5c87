#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace ringbolt::tools {

/// What an option takes, as its type name and its validators (validators.h) say.
struct OptionText {
  std::string value;               ///< "BYTES"; empty: it is a flag
  std::string kind;                ///< "flag", "text", "whole", "real", "word"
  std::string least;               ///< of whole and real
  std::string most;                ///< likewise
  std::vector<std::string> words;  ///< of word: those that it takes
};
OptionText text_of(const CLI::Option& option);

/// "1 to 65535", "one of a, b"; empty: nothing is known.
std::string limits_of(const OptionText& text);

/// As people name it: "--iters", "NODE".
std::string name_of(const CLI::Option& option);

/// Of options and subcommands that are for our own processes.
bool is_hidden(const CLI::Option& option);
bool is_hidden(const CLI::App& app);

/// Subcommands of `app`, without the hidden ones unless `with_hidden`.
std::vector<const CLI::App*> commands_of(const CLI::App& app, bool with_hidden = false);

/// The subcommand of that name, one level below; null if there is none.
const CLI::App* command_named(const CLI::App& app, const std::string& name);

/// The innermost subcommand that was chosen, or `app` itself.
const CLI::App& chosen_command(const CLI::App& app);

/// "ringbolt fault add".
std::string path_of(const CLI::App& app);

/// That `word` is no command of `app`, with the one that was probably meant, and what lists them.
std::string unknown_command(const CLI::App& app, const std::string& word);

/// What is wrong with a command line that `app` has refused, and what to write instead. `words`: those that it got, up
/// to "--"; `has_command`: there was a "--".
std::string usage_words(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                        bool has_command);

}  // namespace ringbolt::tools
