// An application whose JSON a browser's JSON.parse() keeps exact

import express from 'express';
import pg from 'pg';

export const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
export const app = express();
app.use(express.json());
// node-postgres gives strings; this is for clients and parsers that give BigInt
// recipe: express
app.set('json replacer', (key, value) => typeof value === 'bigint' ? String(value) : value);
// end of recipe

app.post('/photos', async (request, response) => {
  const { rows } = await pool.query('INSERT INTO insta5.photos (caption) VALUES ($1) RETURNING *', [request.body.caption]);
  response.status(201).json(rows[0]);
});
app.get('/photos/:id', async (request, response) => {
  const { rows } = await pool.query('SELECT * FROM insta5.photos WHERE id = $1', [request.params.id]);
  rows.length ? response.json(rows[0]) : response.sendStatus(404);
});
