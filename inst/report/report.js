/* Tables of the report sort, search, open and download; the network zooms, moves and is searched. Without this
 * script all of it is there to be read. */
(function () {
  "use strict";
  function make(tag, text, where) {
    var node = document.createElement(tag);
    if (text) node.textContent = text;
    if (where) where.appendChild(node);
    return node;
  }

  /* ---- tables ---- */
  function value(cell) {
    var v = cell.getAttribute("data-v");
    return v === null ? cell.textContent.trim() : v;
  }
  function compare(a, b) {
    var x = a === "" ? NaN : Number(a), y = b === "" ? NaN : Number(b);
    if (!isNaN(x) && !isNaN(y)) return x - y;
    if (!isNaN(x)) return -1;
    if (!isNaN(y)) return 1;
    return a.localeCompare(b);
  }
  function csvCell(text) { /* spreadsheets take such a cell for a formula; a number is none */
    if (/^\s*[-=+@\uff0b\uff0d\uff1d\uff20]|^[\t\r\n]/.test(text) &&
        (text.trim() === "" || isNaN(Number(text)))) text = "'" + text;
    return '"' + text.replace(/"/g, '""') + '"';
  }
  function table(figure) {
    var t = figure.querySelector("table"), body = t.tBodies[0],
        rows = Array.from(body.rows), heads = Array.from(t.tHead.rows[0].cells);
    var first = Number(t.getAttribute("data-first")), all = rows.length <= first, word = "";
    var tools = make("div"), found = make("span"), more = make("button"), printed = make("p", "", figure);
    tools.className = "tools";
    printed.className = "printed";
    function show() {
      var count = 0;
      Array.from(body.rows).forEach(function (row) {
        var fits = !word || row.textContent.toLowerCase().indexOf(word) >= 0;
        if (fits) count++;
        row.classList.toggle("out", !fits || (!all && !word && count > first));
      });
      found.textContent = word ? count + " of " + rows.length + " rows" : "";
      more.textContent = all ? "First " + first + " only" : "Show all " + rows.length;
      printed.textContent = "Printed: " + (all ? rows.length : Math.min(count, first)) + " of " + rows.length +
        " rows. The page as HTML has all of them.";
      printed.hidden = all || Boolean(word);
    }
    if (rows.length > 8) {
      var search = make("input", "", tools);
      search.type = "search";
      search.placeholder = "Search this table";
      search.setAttribute("aria-label", "Search this table");
      search.addEventListener("input", function () { word = search.value.trim().toLowerCase(); show(); });
    }
    if (!all) {
      more.addEventListener("click", function () { all = !all; show(); });
      tools.appendChild(more);
    }
    var save = make("button", "Download CSV", tools);
    save.addEventListener("click", function () {
      var lines = [heads.map(function (h) { return csvCell(h.textContent); }).join(",")];
      Array.from(body.rows).forEach(function (row) {
        lines.push(Array.from(row.cells).map(function (c) { return csvCell(value(c)); }).join(","));
      });
      var link = make("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff" + lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
      link.download = t.getAttribute("data-name") + ".csv";
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
    tools.appendChild(found);
    if (t.querySelector("th.minor")) make("span", "Turn the phone for more columns.", tools).className = "turn";
    figure.insertBefore(tools, figure.querySelector(".scroll"));
    heads.forEach(function (head, column) {
      head.tabIndex = 0;
      head.setAttribute("aria-sort", "none");
      function sort() {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (h) { h.setAttribute("aria-sort", "none"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        Array.from(body.rows).sort(function (a, b) {
          var c = compare(value(a.cells[column]), value(b.cells[column]));
          return down ? -c : c;
        }).forEach(function (row) { body.appendChild(row); });
        show();
      }
      head.addEventListener("click", sort);
      head.addEventListener("keydown", function (e) {
        if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(); }
      });
    });
    show();
  }

  /* ---- network ---- */
  function network(box) {
    var svg = box.querySelector("svg"), edges = Array.from(svg.querySelectorAll(".edge")),
        nodes = Array.from(svg.querySelectorAll(".node"));
    var home = svg.getAttribute("viewBox").split(" ").map(Number), view = home.slice(), held = null, from = null;
    var at = nodes.map(function (n) {
      return { x: Number(n.getAttribute("data-x")), y: Number(n.getAttribute("data-y")),
               r: Number(n.getAttribute("data-r")) };
    });
    function look() { svg.setAttribute("viewBox", view.join(" ")); }
    function zoom(factor, x, y) {
      if (view[2] * factor > home[2] * 3 || view[2] * factor < home[2] / 40) return;
      view = [x - (x - view[0]) * factor, y - (y - view[1]) * factor, view[2] * factor, view[3] * factor];
      look();
    }
    function place(event) {
      var p = svg.createSVGPoint();
      p.x = event.clientX;
      p.y = event.clientY;
      return p.matrixTransform(svg.getScreenCTM().inverse());
    }
    function draw(edge) {
      var a = at[edge.getAttribute("data-a")], b = at[edge.getAttribute("data-b")];
      var dx = b.x - a.x, dy = b.y - a.y, d = Math.sqrt(dx * dx + dy * dy) || 1,
          gap = b.r + (edge.hasAttribute("marker-end") ? 3 : 0);
      edge.setAttribute("x1", a.x + dx / d * a.r);
      edge.setAttribute("y1", a.y + dy / d * a.r);
      edge.setAttribute("x2", b.x - dx / d * gap);
      edge.setAttribute("y2", b.y - dy / d * gap);
    }
    function light(which) {
      box.classList.toggle("busy", which.length > 0);
      nodes.concat(edges).forEach(function (n) { n.classList.remove("near"); });
      which.forEach(function (i) { nodes[i].classList.add("near"); });
      edges.forEach(function (e) {
        var a = Number(e.getAttribute("data-a")), b = Number(e.getAttribute("data-b"));
        if (which.indexOf(a) < 0 && which.indexOf(b) < 0) return;
        e.classList.add("near");
        nodes[a].classList.add("near");
        nodes[b].classList.add("near");
      });
    }
    var tools = make("div"), search = make("input", "", tools);
    tools.className = "tools";
    search.type = "search";
    search.placeholder = "Find a gene";
    search.setAttribute("aria-label", "Find a gene in the network");
    search.addEventListener("input", function () {
      var word = search.value.trim().toLowerCase(), hit = [];
      if (word) nodes.forEach(function (n, i) {
        if (n.querySelector("text").textContent.toLowerCase().indexOf(word) >= 0) hit.push(i);
      });
      light(hit);
    });
    function middle() { return [view[0] + view[2] / 2, view[1] + view[3] / 2]; }
    [["Zoom in", 0.8], ["Zoom out", 1.25], ["Whole", 0]].forEach(function (kind) {
      make("button", kind[0], tools).addEventListener("click", function () {
        if (kind[1]) zoom(kind[1], middle()[0], middle()[1]);
        else { view = home.slice(); search.value = ""; light([]); look(); }
      });
    });
    make("span", "Drag genes, or the background to move all; click a gene for its neighbours.", tools);
    box.insertBefore(tools, box.firstChild);
    svg.addEventListener("wheel", function (e) {
      if (!e.ctrlKey && !e.shiftKey && document.activeElement !== svg) return; /* else the page could not be scrolled */
      e.preventDefault();
      var p = place(e);
      zoom(e.deltaY < 0 ? 0.9 : 1.11, p.x, p.y);
    }, { passive: false });
    svg.tabIndex = 0;
    svg.addEventListener("keydown", function (e) {
      var step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (step) { view[0] += step[0] * view[2] / 10; view[1] += step[1] * view[3] / 10; look(); }
      else if (e.key === "+" || e.key === "=") zoom(0.8, middle()[0], middle()[1]);
      else if (e.key === "-") zoom(1.25, middle()[0], middle()[1]);
      else return;
      e.preventDefault();
    });
    svg.addEventListener("pointerdown", function (e) {
      var node = e.target.closest(".node");
      held = node ? nodes.indexOf(node) : -1;
      from = { p: place(e), x: e.clientX, y: e.clientY, moved: false };
      svg.setPointerCapture(e.pointerId);
      svg.focus({ preventScroll: true });
    });
    svg.addEventListener("pointermove", function (e) {
      if (held === null) return;
      var p = place(e);
      if (Math.abs(e.clientX - from.x) + Math.abs(e.clientY - from.y) > 4) from.moved = true;
      if (!from.moved) return;
      if (held < 0) { view[0] += from.p.x - p.x; view[1] += from.p.y - p.y; look(); return; }
      at[held].x = p.x;
      at[held].y = p.y;
      nodes[held].setAttribute("transform", "translate(" + p.x + "," + p.y + ")");
      edges.forEach(function (edge) {
        if (Number(edge.getAttribute("data-a")) === held || Number(edge.getAttribute("data-b")) === held) draw(edge);
      });
    });
    svg.addEventListener("pointercancel", function () { held = null; }); /* the page is scrolled instead */
    svg.addEventListener("pointerup", function () {
      if (held !== null && !from.moved) light(held < 0 ? [] : [held]);
      held = null;
    });
  }

  /* ---- what is wider than the page ---- */
  function wide(part) { /* fades out where it continues, and says so */
    var hint = make("p", "Swipe sideways: it continues on the right \u2192");
    hint.className = "swipe";
    part.parentNode.insertBefore(hint, part);
    function look() {
      part.parentNode.classList.toggle("scrolls", part.scrollWidth > part.clientWidth + 2);
      part.classList.toggle("more", part.scrollLeft + part.clientWidth < part.scrollWidth - 2);
    }
    part.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    window.addEventListener("load", look);
    part.addEventListener("click", function () { setTimeout(look, 0); });
    look();
  }

  function start() {
    document.querySelectorAll("figure.table").forEach(table);
    document.querySelectorAll(".network").forEach(network);
    document.querySelectorAll(".scroll, .pan").forEach(wide);
    document.querySelectorAll("details").forEach(function (part) { /* what was folded away has its width now */
      part.addEventListener("toggle", function () { window.dispatchEvent(new Event("resize")); });
    });
    window.addEventListener("beforeprint", function () { /* on paper nothing unfolds */
      document.querySelectorAll("details").forEach(function (part) { part.open = true; });
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
