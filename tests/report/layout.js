// What a reader would see go wrong: each check returns a list of complaints about the page as it is shown now.
(() => {
  const name = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute("class") || ""} "${(e.textContent || "").trim().slice(0, 60)}"`;
  const shown = (e) => e.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true });
  const scrolls = (e) => {
    for (let p = e; p; p = p.parentElement) if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return p;
    return null;
  };
  const html = [...document.querySelectorAll("body *")].filter((e) => !e.closest("svg") && shown(e));

  function overflow() {
    const found = [];
    for (const e of html) {
      const box = e.getBoundingClientRect();
      if (!box.width || getComputedStyle(e).display === "inline" || scrolls(e)) continue;
      if (e.scrollWidth > e.clientWidth + 1) found.push(`wider than its box: ${name(e)}`);
      if (box.right > innerWidth + 1 || box.left < -1) found.push(`out of the page: ${name(e)}`);
    }
    return found;
  }

  // Tables that have to be scrolled.
  function clipped() {
    return html.filter((e) => e.matches(".scroll") && !e.closest(".drawing") && e.scrollWidth > e.clientWidth + 1).map(name);
  }

  function pictures() {
    const found = [];
    for (const svg of document.querySelectorAll("svg.picture")) {
      if (!shown(svg)) continue;
      const frame = svg.closest("figure").getBoundingClientRect();
      const title = svg.closest("figure").querySelector("h3").textContent;
      const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()]);
      for (const [t, box] of texts) {
        if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push(`${title}: cut: ${t.textContent}`);
      }
      for (let i = 0; i < texts.length; i++)
        for (let j = 0; j < i; j++) {
          const [a, b] = [texts[i][1], texts[j][1]];
          const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (wide > 2 && tall > Math.min(a.height, b.height) * 0.4)
            found.push(`${title}: "${texts[i][0].textContent}" on "${texts[j][0].textContent}"`);
        }
    }
    return found;
  }

  // Bars: the share of its track that each one fills, against the percentage that stands beside it.
  function bars() {
    const found = [];
    for (const svg of document.querySelectorAll('svg.picture[aria-label^="Bars:"]')) {
      if (!shown(svg)) continue;
      const fill = (e) => e.getAttribute("style") || "";
      const said = [...svg.querySelectorAll("text")]
        .map((t) => [t.textContent.match(/(\d+(?:\.\d+)?)%/), t.getBoundingClientRect()])
        .filter(([m]) => m)
        .sort((a, b) => a[1].top - b[1].top);
      const paths = [...svg.querySelectorAll("path")].filter((p) => fill(p).includes("fill:var(--") && !fill(p).includes("--card"));
      paths.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
      const tracks = paths.filter((p) => fill(p).includes("--track"));
      if (!said.length || !tracks.length) continue;
      const filled = paths.filter((p) => !fill(p).includes("--track"));
      if (said.length !== tracks.length || filled.length !== tracks.length) {
        found.push(`${said.length} shares, ${tracks.length} tracks, ${filled.length} bars in ${svg.getAttribute("aria-label").slice(0, 60)}`);
        continue;
      }
      tracks.forEach((track, i) => {
        const share = filled[i].getBoundingClientRect().width / track.getBoundingClientRect().width;
        if (Math.abs(share * 100 - Number(said[i][0][1])) > 1.5)
          found.push(`${said[i][0][1]}% is drawn as ${(share * 100).toFixed(1)}%: ${svg.getAttribute("aria-label").slice(0, 60)}`);
      });
    }
    return found;
  }

  const rgb = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { c: parts.slice(0, 3), a: parts.length > 3 ? parts[3] : 1 };
  };
  const over = (top, below, alpha) => top.map((v, i) => v * alpha + below[i] * (1 - alpha));
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const background = (e) => {
    const layers = [];
    for (let p = e; p; p = p.parentElement) {
      const colour = rgb(getComputedStyle(p).backgroundColor);
      if (colour.a) layers.push(colour);
      if (colour.a === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer.c, below, layer.a), [255, 255, 255]);
  };
  const inside = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;

  // Text of less than 4.5:1 (WCAG 2.2 AA). In a picture the shape that is painted last below a text's centre is behind it.
  function contrasts() {
    const found = [];
    const check = (e, ink, behind) => {
      const ratio = contrast(ink, behind);
      if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${name(e)} in ${(e.closest("figure") || e).id}`);
    };
    for (const e of html) {
      if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
      const behind = background(e);
      const ink = rgb(getComputedStyle(e).color);
      check(e, over(ink.c, behind, ink.a), behind);
    }
    for (const svg of document.querySelectorAll("svg.picture")) {
      if (!shown(svg)) continue;
      const painted = [...svg.querySelectorAll("path, rect, use, text")];
      const boxes = painted.map((p) => p.getBoundingClientRect());
      painted.forEach((t, i) => {
        if (t.tagName !== "text") return;
        const [x, y] = [(boxes[i].left + boxes[i].right) / 2, (boxes[i].top + boxes[i].bottom) / 2];
        let behind = background(svg.closest("figure"));
        for (let j = 0; j < i; j++) {
          const style = getComputedStyle(painted[j]);
          if (painted[j].tagName === "text" || style.fill === "none" || !inside(boxes[j], x, y)) continue;
          const fill = rgb(style.fill);
          behind = over(fill.c, behind, fill.a * Number(style.opacity) * Number(style.fillOpacity));
        }
        check(t, rgb(getComputedStyle(t).fill).c, behind);
      });
    }
    return found;
  }

  // Words for colours in what edgen says itself: they are wrong in one of the two schemes.
  function colourWords() {
    const own = "h2, h3, figcaption, .lead, .note, .legend, .remarks, summary, .tiles, footer, th, dl.words";
    const words = /\b(pale|dark|darker|light|lighter|bright|blue|orange|green|red|gr[ae]y|purple|vermillion|white|black|shaded?|yellow)\b/i;
    return html.filter((e) => e.matches(own) && !e.closest(".card") && words.test(e.textContent)).map(name);
  }

  // Frames that meet: below one and the next on the page there is a gap.
  function touching() {
    const found = [];
    const frames = html.filter((e) => e.matches("figure, .card")).map((e) => [e, e.getBoundingClientRect()]);
    for (const [a, above] of frames)
      for (const [b, below] of frames) {
        const gap = below.top - above.bottom;
        if (a !== b && gap > -2 && gap < 4 && Math.min(above.right, below.right) > Math.max(above.left, below.left))
          found.push(`${name(a)} touches ${name(b)}`);
      }
    return found;
  }

  // Values of which a part stands on the next line with a part of their interval: the interval begins its line.
  function torn() {
    return html.filter((e) => e.matches(".interval") && e.getClientRects().length > 1).map((e) => name(e.parentElement));
  }

  return { overflow, touching, torn, clipped, pictures, bars, contrasts, colourWords };
})()
