import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PrepareProgram } from './home.ts'

export const prepareOpencode: PrepareProgram = async ({ folder, modelUrl, key }) => {
  const place = join(folder, '.config', 'opencode')
  await mkdir(place, { recursive: true })
  const config = {
    $schema: 'https://opencode.ai/config.json',
    autoupdate: false,
    share: 'disabled',
    model: 'scripted/scripted-model',
    provider: {
      scripted: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Scripted model',
        options: { baseURL: `${modelUrl}/v1`, apiKey: '{env:SCRIPTED_MODEL_KEY}' },
        models: { 'scripted-model': { name: 'Scripted', limit: { context: 200_000, output: 8_000 } } },
      },
    },
    permission: { bash: 'ask' },
  }
  await writeFile(join(place, 'opencode.json'), JSON.stringify(config))
  // The list of every vendor's models takes half the processor time of a start, and no test needs it.
  const models = join(place, 'models.json')
  await writeFile(models, '{}')
  return {
    SCRIPTED_MODEL_KEY: key,
    OPENCODE_MODELS_PATH: models,
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    npm_config_offline: 'true',
  }
}
