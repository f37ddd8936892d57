# Bash completion for kubelane. Commands and options come from --help, so they are always the
# binary's own.

# The words that may follow the command `kubelane ARG...`: subcommands, else options.
_kubelane_help() {
  "$@" --help 2>/dev/null | awk -v kind="$_kubelane_kind" '
    /^[A-Z][A-Za-z ]*:/ { part = $1; next }
    kind == "commands" && part == "Subcommands:" && /^  [a-z]/ { print $1 }
    kind == "options" && part == "Options:" && /^  -/ {
      n = split($1, names, ",")
      for (i = 1; i <= n; i++) if (names[i] ~ /^--/) print names[i]
    }'
}

_kubelane() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=("${COMP_WORDS[0]}") commands word i _kubelane_kind
  COMPREPLY=()
  case "$previous" in
    --format)
      COMPREPLY=($(compgen -W "text json markdown" -- "$current"))
      return
      ;;
    --config | --against | --output | --bundle | --file | --inventory | --root | --cacert | --cert | --key)
      COMPREPLY=($(compgen -f -- "$current"))
      return
      ;;
  esac
  # The commands typed so far; each is one that the commands before it have.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    _kubelane_kind=commands
    commands=$(_kubelane_help "${command[@]}")
    grep -qxF -- "$word" <<<"$commands" && command+=("$word")
  done
  if [[ $current == -* ]]; then
    _kubelane_kind=options
    COMPREPLY=($(compgen -W "$(_kubelane_help "${command[@]}")" -- "$current"))
    return
  fi
  _kubelane_kind=commands
  commands=$(_kubelane_help "${command[@]}")
  if [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}

complete -o filenames -F _kubelane kubelane
