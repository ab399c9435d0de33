// Shows the ranking of the selected cell, or of the nearest cell that was run. Without this script, the page has its tables
// only.
"use strict";

(() => {
  const AXES = ["agents", "graph", "partition", "missing", "links"];
  const PICKS = ["problem", ...AXES, "epsilon", "tuning", "observer"];
  const INFINITE = 1e300;
  const cellsOf = {};
  let index = null;
  window.comparison = (data) => { index = data; };
  window.compared = (name, cells) => { cellsOf[name] = cells; draw(); };

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
  const title = (method) => index.methods[method].title;
  const listed = (names) => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

  function fill(select, values, words = String) {
    select.replaceChildren(...values.map((value) => new Option(words(value), value)));
  }

  function element(kind, text, name) {
    const node = document.createElement(kind);
    node.textContent = text;
    if (name) node.className = name;
    return node;
  }

  // Return the requested cell, or the one that differs in the fewest parameters and then has the closest budget.
  function nearest(cells, wanted, epsilon) {
    const difference = ({ cell }) => [
      AXES.filter((axis, i) => cell[i + 1] !== wanted[i]).length, Math.abs(Math.log(cell[6] / epsilon)),
    ];
    const key = (cell) => { const [axes, budget] = difference(cell); return 1000 * axes + budget; };
    return cells.reduce((best, cell) => (key(cell) < key(best) ? cell : best));
  }

  const named = (row, names) => Object.fromEntries(names.map((name, i) => [name, row[i]]));

  function description(cell) {
    const [problem, agents, graph, partition, missing, links, epsilon] = cell;
    const titles = index.titles;
    const faults = [missing && `agents missing ${missing}`, links && `edges failing ${links}`].filter(Boolean);
    return [titles.problem[problem], `N = ${agents}`, titles.graph[graph] ?? graph, titles.partition[partition] ?? partition,
      ...faults, `ε = ${epsilon}`].join(", ");
  }

  function answer(rows) {
    if (!rows.length) return "No ranked method ran in this cell.";
    const [first, ...others] = rows;
    const loss = `excess loss ${shown(first.mean)} ${range(first.low, first.high)}`;
    const indistinguishable = others.filter((row) => row.may_be_best).map((row) => title(row.method));
    const parts = [];
    if (first.may_be_best === null) {
      parts.push(`${title(first.method)} has the lowest mean, ${loss}. This scale decides no ranking.`);
    } else if (indistinguishable.length) {
      parts.push(`${title(first.method)} has the lowest mean, ${loss}. At 95 %, it does not differ significantly from ${listed(indistinguishable)}.`);
    } else if (others.length) {
      parts.push(`${title(first.method)} is best at 95 %, ${loss}. Second is ${title(others[0].method)}, ` +
        `whose loss is larger by at least ${shown(Math.max(0, others[0].behind_low))}.`);
    } else {
      parts.push(`${title(first.method)} is the only ranked method, ${loss}.`);
    }
    if (first.share !== null && first.share !== undefined) {
      parts.push(`It closes ${percent(first.share)} [${percent(first.share_low)}, ${percent(first.share_high)}] of the gap ` +
        "between local training and noise under secure aggregation.");
    }
    return parts.join(" ");
  }

  // Return a remark if the budget of the cell is too small, and the loss without privacy.
  function remarks(shownCell, observer) {
    const small = (shownCell.learnable ?? {})[observer] === false
      ? " The budget is too small for this choice of the parameters: no private method is better than all models without privacy cost." : "";
    const withoutPrivacy = (shownCell.unproven ?? []).map((row) => named(row, index.unproven))
      .filter((row) => index.methods[row.method].observer === "none");
    return small + withoutPrivacy.map((row) => ` ${title(row.method)}: excess loss ${shown(row.mean)}.`).join("");
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
    const names = index.costs;
    table("compared-ranking", ["Method", "Possibly best", "Excess loss", "95 % interval", "Larger than the lowest by at least", "Gap closed", "95 % interval",
      "Excess loss of the worst agent", "Test accuracy", "Consensus error", ...names.map((name) => name.replaceAll("_", " ")), "Pareto front of loss and"],
      rows.map((row) => {
        const costsOfMethod = costs.find(([method]) => method === row.method)?.slice(1) ?? [];
        const fronts = names.filter((_, bit) => (row.front >> bit) & 1).map((name) => name.split("_")[0]);
        return {
          name: title(row.method), best: row.may_be_best,
          cells: [{ 1: "yes", 0: "no" }[row.may_be_best] ?? "not decided", shown(row.mean), range(row.low, row.high), shown(row.behind_low),
            percent(row.share), row.share === null ? "–" : `[${percent(row.share_low)}, ${percent(row.share_high)}]`,
            shown(row.excess_loss_worst), row.accuracy_mean === null ? "–" : percent(row.accuracy_mean), shown(row.consensus_error),
            ...names.map((_, i) => shown(costsOfMethod[i])), fronts.join(", ") || "–"],
        };
      }));
  }

  function drawUnranked(rows) {
    table("compared-unranked", ["Method without rank", "Excess loss", "True ε, at least", "True ε, at most"], rows.map((row) => ({
      name: title(row.method), best: false,
      cells: [shown(row.mean), shown(row.epsilon_lower), shown(row.epsilon_accountant)],
    })));
  }

  function draw() {
    if (!index) return;
    const name = `${at("problem").value}-${at("tuning").value}`, cells = cellsOf[name];
    if (!cells) {
      const script = document.createElement("script");
      script.src = `assets/compared-${name}.js`;
      document.head.append(script);
      return;
    }
    const wanted = AXES.map((axis) => { const text = at(axis).value; return Number.isNaN(Number(text)) ? text : Number(text); });
    const epsilon = Number(at("epsilon").value), observer = at("observer").value;
    const status = document.getElementById("compared-says"), mark = document.getElementById("compared-nearest");
    document.getElementById("compared").hidden = false;
    if (!cells.length) {
      mark.hidden = true;
      status.textContent = "No cell of this problem was run with this kind of tuning.";
      drawRanking([], []);
      drawUnranked([]);
      return;
    }
    const shownCell = nearest(cells, wanted, epsilon);
    mark.hidden = shownCell.cell[6] === epsilon && AXES.every((_, i) => shownCell.cell[i + 1] === wanted[i]);
    mark.textContent = `This cell was not run. The ranking is that of the nearest cell: ${description(shownCell.cell)}.`;
    const rows = (shownCell[observer] ?? []).map((row) => named(row, index.place));
    status.textContent = `${description(shownCell.cell)}: ${answer(rows)}${remarks(shownCell, observer)}`;
    drawRanking(rows, shownCell.costs ?? []);
    drawUnranked((shownCell.unproven ?? []).map((row) => named(row, index.unproven)));
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!index) return;
    const titles = index.titles;
    fill(at("problem"), Object.keys(titles.problem), (name) => titles.problem[name]);
    for (const axis of AXES) fill(at(axis), index.axes[axis], (value) => titles[axis]?.[value] ?? String(value));
    fill(at("epsilon"), index.epsilons);
    at("epsilon").value = index.epsilons[Math.floor(index.epsilons.length / 2)];
    fill(at("tuning"), Object.keys(index.tunings), (name) => index.tunings[name]);
    fill(at("observer"), index.observers, (name) => index.observer_titles[name] ?? name);
    for (const name of PICKS) at(name).addEventListener("change", draw);
    draw();
  });
})();
