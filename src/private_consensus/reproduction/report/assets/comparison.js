// Which algorithm: the ranking of the cell that a reader picks, or of the nearest that was run. Without this script the
// page still has its tables.
"use strict";

(() => {
  const AXES = ["agents", "graph", "partition", "missing", "links"];
  const PICKS = ["problem", ...AXES, "epsilon", "tuning", "observer"];
  const INFINITE = 1e300;
  const known = {};
  let front = null;
  window.comparison = (found) => { front = found; };
  window.compared = (name, cells) => { known[name] = cells; draw(); };

  const at = (name) => document.getElementById(`pick-${name}`);
  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) >= INFINITE) return value > 0 ? "∞" : "−∞";
    const small = value !== 0 && Math.abs(value) < 0.001;
    const text = small || Math.abs(value) >= 1e6 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
    return text.replaceAll("-", "−");
  };
  const range = (low, high) => `[${shown(low)}, ${shown(high)}]`;
  const percent = (value) => (value === null ? "–" : Math.abs(value) >= INFINITE ? shown(value) : `${shown(Math.round(100 * value))} %`);
  const title = (index) => front.methods[index].title;
  const listed = (names) => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

  function fill(select, values, words = String) {
    select.replaceChildren(...values.map((value) => new Option(words(value), value)));
  }

  function element(kind, text, name) {
    const made = document.createElement(kind);
    made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  // The cell that was asked for, or the one that differs in the fewest axes and then in the budget least.
  function nearest(cells, wanted, epsilon) {
    const apart = ({ cell }) => [
      AXES.filter((axis, i) => cell[i + 1] !== wanted[i]).length, Math.abs(Math.log(cell[6] / epsilon)),
    ];
    const key = (cell) => { const [axes, budget] = apart(cell); return 1000 * axes + budget; };
    return cells.reduce((best, cell) => (key(cell) < key(best) ? cell : best));
  }

  const named = (row, names) => Object.fromEntries(names.map((name, i) => [name, row[i]]));

  function said(cell) {
    const [problem, agents, graph, partition, missing, links, epsilon] = cell;
    const titles = front.titles;
    const faults = [missing && `agents missing ${missing}`, links && `edges failing ${links}`].filter(Boolean);
    return [titles.problem[problem], `N = ${agents}`, titles.graph[graph] ?? graph, titles.partition[partition] ?? partition,
      ...faults, `ε = ${epsilon}`].join(", ");
  }

  function answer(rows) {
    if (!rows.length) return "No ranked method ran here.";
    const [first, ...others] = rows;
    const loss = `excess loss ${shown(first.mean)} ${range(first.low, first.high)}`;
    const alike = others.filter((row) => row.may_be_best).map((row) => title(row.method));
    const parts = [];
    if (first.may_be_best === null) {
      parts.push(`${title(first.method)} has the lowest mean, ${loss}. This scale decides nothing.`);
    } else if (alike.length) {
      parts.push(`${title(first.method)} has the lowest mean, ${loss}; at 95 % it cannot be told apart from ${listed(alike)}.`);
    } else if (others.length) {
      parts.push(`${title(first.method)} is best, ${loss}: at 95 % no other method may be. Next is ${title(others[0].method)}, ` +
        `worse by at least ${shown(Math.max(0, others[0].behind_low))}.`);
    } else {
      parts.push(`${title(first.method)} is the only method, ${loss}.`);
    }
    if (first.share !== null && first.share !== undefined) {
      parts.push(`It closes ${percent(first.share)} [${percent(first.share_low)}, ${percent(first.share_high)}] of the gap ` +
        "between local training and noise under secure aggregation.");
    }
    return parts.join(" ");
  }

  // The mark of a cell in which nothing private is learned, and the loss without privacy.
  function remarks(found, observer) {
    const small = (found.learnable ?? {})[observer] === false
      ? " Budget too small for these data: no private method is better than all models without privacy cost." : "";
    const free = (found.unproven ?? []).map((row) => named(row, front.unproven))
      .filter((row) => front.methods[row.method].observer === "none");
    return small + free.map((row) => ` ${title(row.method)}: excess loss ${shown(row.mean)}.`).join("");
  }

  function table(target, heads, rows) {
    const head = document.createElement("tr"), body = document.createElement("tbody"), top = document.createElement("thead");
    heads.forEach((text, i) => {
      const cell = element("th", text, i ? "n" : "");
      cell.scope = "col";
      head.append(cell);
    });
    top.append(head);
    for (const { name, best, cells } of rows) {
      const row = document.createElement("tr"), first = element("th", name, best ? "may-be-best" : "");
      first.scope = "row";
      row.append(first, ...cells.map((text) => element("td", text, "n")));
      body.append(row);
    }
    const box = document.getElementById(target);
    box.replaceChildren(top, body);
    box.closest(".scroll").hidden = rows.length === 0;
  }

  function drawRanking(rows, costs) {
    const names = front.costs;
    table("compared-ranking", ["Method", "may be best", "excess loss", "95 % interval", "behind, at least", "gap closed", "interval",
      "worst agent", "test accuracy", "disagreement", ...names.map((name) => name.replaceAll("_", " ")), "on a front of"],
      rows.map((row) => {
        const paid = costs.find(([method]) => method === row.method)?.slice(1) ?? [];
        const fronts = names.filter((_, bit) => (row.front >> bit) & 1).map((name) => name.split("_")[0]);
        return {
          name: title(row.method), best: row.may_be_best,
          cells: [{ 1: "yes", 0: "no" }[row.may_be_best] ?? "not decided", shown(row.mean), range(row.low, row.high), shown(row.behind_low),
            percent(row.share), row.share === null ? "–" : `[${percent(row.share_low)}, ${percent(row.share_high)}]`,
            shown(row.excess_loss_worst), row.accuracy_mean === null ? "–" : percent(row.accuracy_mean), shown(row.consensus_error),
            ...names.map((_, i) => shown(paid[i])), fronts.join(", ") || "–"],
        };
      }));
  }

  function drawApart(rows) {
    table("compared-apart", ["Not ranked", "excess loss", "true ε: at least", "at most"], rows.map((row) => ({
      name: title(row.method), best: false,
      cells: [shown(row.mean), shown(row.epsilon_lower), shown(row.epsilon_accountant)],
    })));
  }

  function draw() {
    if (!front) return;
    const name = `${at("problem").value}-${at("tuning").value}`, ran = known[name];
    if (!ran) {
      const script = document.createElement("script");
      script.src = `assets/compared-${name}.js`;
      document.head.append(script);
      return;
    }
    const wanted = AXES.map((axis) => { const text = at(axis).value; return Number.isNaN(Number(text)) ? text : Number(text); });
    const epsilon = Number(at("epsilon").value), observer = at("observer").value;
    const status = document.getElementById("compared-says"), mark = document.getElementById("compared-nearest");
    document.getElementById("compared").hidden = false;
    if (!ran.length) {
      mark.hidden = true;
      status.textContent = "Nothing was run with this kind of tuning on this problem.";
      drawRanking([], []);
      drawApart([]);
      return;
    }
    const found = nearest(ran, wanted, epsilon);
    mark.hidden = found.cell[6] === epsilon && AXES.every((_, i) => found.cell[i + 1] === wanted[i]);
    mark.textContent = `This cell was not run. Shown is the nearest one that was: ${said(found.cell)}.`;
    const rows = (found[observer] ?? []).map((row) => named(row, front.place));
    status.textContent = `${said(found.cell)}: ${answer(rows)}${remarks(found, observer)}`;
    drawRanking(rows, found.costs ?? []);
    drawApart((found.unproven ?? []).map((row) => named(row, front.unproven)));
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!front) return;
    const titles = front.titles;
    fill(at("problem"), Object.keys(titles.problem), (name) => titles.problem[name]);
    for (const axis of AXES) fill(at(axis), front.axes[axis], (value) => titles[axis]?.[value] ?? String(value));
    fill(at("epsilon"), front.epsilons);
    at("epsilon").value = front.epsilons[Math.floor(front.epsilons.length / 2)];
    fill(at("tuning"), Object.keys(front.tunings), (name) => front.tunings[name]);
    fill(at("observer"), front.observers, (name) => front.seen[name] ?? name);
    for (const name of PICKS) at(name).addEventListener("change", draw);
    draw();
  });
})();
