/** The browser's application: it takes the place of what the server wrote into `main`. */
const main = document.querySelector('main');
if (main) main.dataset['script'] = 'on';
