// The library has its dark colours in a class; the page follows the system, as the other pages do.
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

// The library's own markup has a link within each operation's button, headings that skip a level, and parts without a
// name. The plugin and the observer mend what assistive technology stumbles over.
const accessible = () => ({
  wrapComponents: {
    DeepLink:
      (_original, { React }) =>
      ({ text }) =>
        React.createElement('span', null, text),
  },
});
const missing = {
  'h3.opblock-tag, .models > h4': { 'aria-level': '2' },
  '#servers': { 'aria-label': 'Server' },
  '.information-container': { role: 'region', 'aria-label': 'About this API' },
  '.scheme-container': { role: 'region', 'aria-label': 'Server and credentials' },
};
new MutationObserver(() => {
  for (const [selector, attributes] of Object.entries(missing)) {
    for (const element of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    }
  }
}).observe(document.body, { childList: true, subtree: true });

// Shows the description that lies beside this page; nothing is fetched from anywhere else.
window.ui = window.SwaggerUIBundle({
  url: document.querySelector('link[rel="service-desc"]').href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  plugins: [accessible],
  tryItOutEnabled: true,
  validatorUrl: null,
});
