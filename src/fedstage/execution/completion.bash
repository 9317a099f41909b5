# Completes the commands of fedstage, what they list, targets that have results, and files.
_fedstage() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} place target
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "COMMANDS" -- "$word")
    elif [[ $command == list && $COMP_CWORD -eq 2 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "KINDS" -- "$word")
    elif [[ $command == completion ]]; then
        mapfile -t COMPREPLY < <(compgen -W "bash zsh" -- "$word")
    elif [[ $command == compare && ${COMP_WORDS[COMP_CWORD - 1]} == --to ]]; then
        return  # a file
    elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == --to ]]; then
        mapfile -t COMPREPLY < <(compgen -W "PROGRAMS" -- "$word")
    elif [[ $command == best || $command == compare || $command == export || $command == list || $command == missing ]]; then
        for place in results/descriptions/*/*.runs.json; do
            target=${place#results/descriptions/}
            target=${target%.runs.json}
            [[ -e $place && $target == "$word"* ]] && COMPREPLY+=("$target")
        done
    fi
}
complete -o default -F _fedstage fedstage
