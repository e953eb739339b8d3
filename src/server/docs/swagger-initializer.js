// Shows the description that lies beside this page; nothing is fetched from anywhere else.
window.ui = window.SwaggerUIBundle({
  url: document.querySelector('link[rel="service-desc"]').href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
