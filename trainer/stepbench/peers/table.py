#!/usr/bin/python3
"""./table.py results.jsonl : what compare.sh measured, as a markdown table with the commands and what spoils it."""
import json, os, sys


def median(v):
    v = sorted(v); n = len(v)
    return v[n // 2] if n % 2 else 0.5 * (v[n // 2 - 1] + v[n // 2])


def cpu():
    for l in open("/proc/cpuinfo"):
        if l.startswith("model name"):
            return l.split(":", 1)[1].strip()
    return "unknown processor"


BARS = {"conv32": ">= 1.25", "resnet128": ">= 1.25", "conv32-bf16": ">= 1.25", "resnet128-bf16": ">= 1.25", "ranks": ">= 0.97", "grbm-bidsm": ">= 1.5", "conv-sm": ">= 1.5"}


def row(case, a, ra, b, rb):
    sa, sb = ([r["result"]["img_s"] for r in x] for x in (ra, rb))
    each = [x / y for x, y in zip(sa, sb)]
    of = lambda f: " : ".join(f([r["result"] for r in x]) for x in (ra, rb))
    print("| %s | %s | %.2f | %s | %.2f | **%.2f** | %s | %s | %s | %s | %s |" % (
        case, a, median(sa), b, median(sb), median(sa) / median(sb), " ".join("%.2f" % x for x in each), BARS.get(case, ""),
        of(lambda v: "%d" % median([sum(r["maxrss_mb"]) for r in v])), of(lambda v: "%.0f %%" % (100 * median([r["other_cpu_used"] for r in v]))),
        of(lambda v: "%d of %d" % (sum(r["n_quiet"] for r in v), sum(r["n_iters"] for r in v)))))


def main():
    cases = {}
    for l in open(sys.argv[1]):
        r = json.loads(l)
        cases.setdefault(r["case"], {}).setdefault(r["side"], []).append(r)
    torch = {r["result"]["torch"] for sides in cases.values() for rs in sides.values() for r in rs if "torch" in r["result"]}
    line = [ns for sides in cases.values() for rs in sides.values() for r in rs for ns in r["result"].get("line_ns") or []]
    apart = "%.0f to %.0f ns apart, " % (min(line), max(line)) if line else ""
    print("%s, %d cores, %s%sload average at the end %s\n" % (cpu(), os.cpu_count(), apart, "".join("PyTorch %s, " % v for v in sorted(torch)), "%.1f %.1f %.1f" % os.getloadavg()))
    print("| case | first | images/s | second | images/s | ratio | ratio by round | bar | peak MiB, first : second | other programs' share of the machine | quiet samples |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    notes = set()
    for case, sides in cases.items():
        (a, ra), *others = sides.items()
        for b, rb in others:
            row(case, a, ra, b, rb)
        for r in (x["result"] for rs in sides.values() for x in rs):
            if r["n_quiet"] < 3:
                notes.add("**Not a measurement:** %s has runs with fewer than 3 quiet samples; other programs were busy." % case)
            if r.get("blas") == "reference":
                notes.add("**The peer is not at its strongest:** torch multiplies matrices by the reference BLAS; apt-get install libopenblas0-openmp.")
            if r.get("blas") == "openblas-pthread" and r["threads"] > 1:
                notes.add("**The peer is not at its strongest:** OpenBLAS has threads of its own; apt-get install libopenblas0-openmp and choose it with update-alternatives.")
            if r.get("blas_core") == "Prescott":
                notes.add("**The peer is not at its strongest:** OpenBLAS takes this processor for one without AVX; see OPENBLAS_CORETYPE in its documentation.")
            if not r["finite"] or r.get("replicas_equal") is False:
                notes.add("**Wrong:** %s has losses that are not finite, or replicas that differ." % case)
    print()
    for n in sorted(notes):
        print("- " + n)
    print("\n```")
    seen = set()
    for sides in cases.values():
        for rs in sides.values():
            if rs[0]["cmd"] not in seen:
                seen.add(rs[0]["cmd"]); print(rs[0]["cmd"])
    print("```")


if __name__ == "__main__":
    main()
