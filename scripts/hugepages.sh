# shellcheck shell=bash
# Hugepages for one run, when the user may reserve them; sourced by the scripts
# that start DPDK programs. The machine gets its number back afterwards.

hugepage_knob=/sys/kernel/mm/hugepages/hugepages-2048kB
hugepages_before=
hugepages_text=
hugepages_lock=/run/lock/tagwire-hugepages

hugepages_free() { cat "$hugepage_knob/free_hugepages" 2>/dev/null || echo 0; }

# reserve_hugepages MEGABYTES: 1 when the programs have to do without. What was
# done, for people, is in hugepages_text.
reserve_hugepages() {
    local wanted=$(($1 / 2)) free available
    # One run at a time: two that reserve would each give back a number that holds the other's pages.
    if [ "$(id -u)" = 0 ] && [ -d "${hugepages_lock%/*}" ]; then
        exec 8>"$hugepages_lock"
        if ! flock -n 8; then
            exec 8>&-
            hugepages_text="--no-huge, because another run uses the hugepages"
            return 1
        fi
    fi
    free=$(hugepages_free)
    if [ "$free" -ge "$wanted" ]; then
        hugepages_text="$free hugepages of 2 MB were free already"
        return 0
    fi
    if [ ! -w "$hugepage_knob/nr_hugepages" ]; then
        hugepages_text="--no-huge, because only root may reserve hugepages"
        return 1
    fi
    available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    if [ "$available" -lt $(($1 * 3)) ]; then
        hugepages_text="--no-huge, because only $available MB of memory are available"
        return 1
    fi
    hugepages_before=$(cat "$hugepage_knob/nr_hugepages")
    echo $((hugepages_before + wanted - free)) 2>/dev/null >"$hugepage_knob/nr_hugepages" || true
    free=$(hugepages_free)
    if [ "$free" -lt "$wanted" ]; then
        restore_hugepages
        hugepages_text="--no-huge, because the kernel gave only $free of $wanted hugepages"
        return 1
    fi
    hugepages_text="$wanted hugepages of 2 MB, reserved for this run"
}

restore_hugepages() {
    [ -n "$hugepages_before" ] || return 0
    echo "$hugepages_before" 2>/dev/null >"$hugepage_knob/nr_hugepages" || true
    hugepages_before=
}
