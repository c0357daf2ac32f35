/**
 * The sending agent: a program in a pane that prints texts from the bench, as an agent prints its answer,
 * and records when it began. It replaces `{nonce}` by its own nonce.
 *
 *   node bench/delivery/sender.ts SOCKET
 */
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

const nonce = process.env.ORC_NONCE ?? ''
const orders = connect(process.argv[2]!)
orders.on('error', () => process.exit(1))
orders.on('close', () => process.exit(0))
process.stdout.write('> ')

createInterface({ input: orders }).on('line', (line) => {
  const text = (JSON.parse(line) as string).replaceAll('{nonce}', nonce)
  const at = process.hrtime.bigint()
  process.stdout.write(`\n${text}\n> `)
  orders.write(`${at}\n`)
})
