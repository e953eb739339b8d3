/** A person at a terminal, who gives these answers, one after the other; undefined is Ctrl-D. */
export function person(...answers: (string | undefined)[]) {
  const questions: string[] = [];
  const ask = async (question: string): Promise<string | undefined> => {
    questions.push(question);
    return answers.shift();
  };
  return { ask, questions, answers };
}
