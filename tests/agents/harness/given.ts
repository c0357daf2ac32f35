import type { ModelServer, Recorded } from '../../fakes/model-server/model-server.ts'

/** Programs take their time on a busy machine. */
const PATIENCE_MS = 60_000

const marker = (id: string) => `[ORCHUB MESSAGE ${id}]`

/** What the model of an agent was truly given, which is what counts in the end. */
export function givenTo(model: ModelServer, agent: string) {
  const calls = () => model.calls(agent)
  return {
    /** The first call, past or to come, whose new words hold that message. */
    message: (id: string): Promise<Recorded> =>
      model.waitFor(
        (call) =>
          call.agent === agent && call.request?.side === false && call.request.userText.includes(marker(id)),
        PATIENCE_MS,
      ),
    text: (words: string): Promise<Recorded> =>
      model.waitFor(
        (call) => call.agent === agent && call.request?.side === false && call.body.includes(words),
        PATIENCE_MS,
      ),
    /** How often it stands in the conversation, as its last request showed it. */
    times: (id: string): number => calls().at(-1)!.body.split(marker(id)).length - 1,
    last: (): Recorded => calls().at(-1)!,
  }
}
