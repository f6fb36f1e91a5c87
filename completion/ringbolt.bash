# Completion of `ringbolt` in bash: the command itself says what a word may become.
_ringbolt() {
  local word=${COMP_WORDS[COMP_CWORD]} i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then  # somebody else's command line begins
      if declare -F _command_offset > /dev/null; then
        _command_offset $((i + 1))
      elif ((COMP_CWORD == i + 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      fi
      return
    fi
  done
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
}
complete -o default -F _ringbolt ringbolt
