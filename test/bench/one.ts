import { BENCHMARKS } from './benchmarks.ts';

/** Runs the one benchmark that it is told, and sends its method and results to the process that started it. */
const [name = '', quick = ''] = process.argv.slice(2);
const loadBenchmark = BENCHMARKS[name];
if (!loadBenchmark || !process.send) throw new RangeError(`there is no benchmark ${name}`);
// Whoever asked is gone: so is the question.
process.once('disconnect', () => process.exit(1));
const { method, run } = await loadBenchmark();
const results = await run({ quick: quick === '--quick' });
process.send({ method, results }, () => process.exit());
