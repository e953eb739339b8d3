// The library has its dark colours in a class; the page follows the system, as the other pages do.
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

// Shows the description that lies beside this page; nothing is fetched from anywhere else.
window.ui = window.SwaggerUIBundle({
  url: document.querySelector('link[rel="service-desc"]').href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
